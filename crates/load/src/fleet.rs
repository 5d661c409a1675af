//! Thousands of clients on one thread.
//!
//! Owns their sockets and who connects when. Deliberately knows nothing of what they say to each other (a [`Scenario`] does), nor where
//! their tokens come from.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use model::Mono;
use protocol::{Command, Connected, Encoding, RequestId};
use reactor::{ConnectError, ConnectOptions, Event, Options, Reactor, Read, SocketId, Waker};
use websocket::Pool;

use crate::client::{Client, Ending, SOCKET_PATH, Said, Stage};

/// Connections from one source address to one port: far below the 28,232 ephemeral ports Linux gives by default, because the kernel looks
/// for a free one by trying.
pub const PER_SOURCE: usize = 8_000;
/// Source addresses that are tried one after the other when one has no port left.
const SOURCES_TRIED_MAX: usize = 16;
/// How a fleet connects.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// The server.
    pub server: SocketAddr,
    /// What the clients call it.
    pub host: String,
    /// Where its socket is.
    pub path: String,
    /// Which encoding to speak.
    pub encoding: Encoding,
    /// Connections being made at the same time.
    pub connecting_max: usize,
    /// The first of the addresses of 127.0.0.0/8 to come from, towards a server on this machine. Never the server's own: a client that
    /// knocks while the server is down could be given the server's port, and connect to itself.
    pub first_source: u16,
    /// From one of its addresses to the next; those between belong to other fleets of the process.
    pub source_stride: u16,
    /// When its time begins.
    pub began: Instant,
    /// Longest wait, so that whoever turns the fleet is asked now and then.
    pub wait_max: Duration,
}

impl FleetOptions {
    /// A fleet that is alone in its process and speaks JSON.
    pub fn new(server: SocketAddr) -> Self {
        FleetOptions {
            server,
            host: server.to_string(),
            path: SOCKET_PATH.to_owned(),
            encoding: Encoding::Json,
            connecting_max: 256,
            first_source: 0,
            source_stride: 1,
            began: Instant::now(),
            wait_max: Duration::from_millis(20),
        }
    }
}

/// The token of each client, made or read when it connects.
pub type Tokens = Box<dyn FnMut(usize) -> Result<String, String>>;

/// What the clients of a fleet do once they are in.
pub trait Scenario {
    /// A client begins to connect.
    fn begun(&mut self, _context: &mut Context<'_>, _client: usize) {}
    /// A client's session stands; what the server said then.
    fn connected(&mut self, context: &mut Context<'_>, client: usize, connected: &Connected);
    /// The server said something to a client, or its connection is over or did not come about.
    fn said(&mut self, context: &mut Context<'_>, client: usize, said: Said<'_>);
    /// The fleet is about to wait: what is due is done now. Says when to be asked again at the latest.
    fn turn(&mut self, _context: &mut Context<'_>) -> Option<Duration> {
        None
    }
}

/// What a scenario may do: let clients ask, come, go and come back.
pub struct Context<'a> {
    asked: &'a mut VecDeque<(usize, Asked)>,
    waiting: &'a mut VecDeque<u32>,
    returns: &'a mut BinaryHeap<Reverse<(Duration, usize)>>,
    /// Time since the fleet began.
    pub now: Duration,
}

enum Asked {
    Command(Option<RequestId>, Command<'static>),
    Leave(Ending),
}

impl Context<'_> {
    /// Lets a client ask something, after what it asked before.
    pub fn request(&mut self, client: usize, id: Option<RequestId>, command: Command<'static>) {
        self.asked.push_back((client, Asked::Command(id, command)));
    }

    /// Lets a client connect as soon as there is room.
    pub fn connect(&mut self, client: usize) {
        self.waiting.push_back(client as u32);
    }

    /// Lets a client whose connection is over connect again at that time.
    pub fn come_back(&mut self, client: usize, at: Duration) {
        self.returns.push(Reverse((at, client)));
    }

    /// Ends a client's connection from its side, or the attempt to make one; the scenario is told of this ending like of any other.
    pub fn leave(&mut self, client: usize, why: Ending) {
        self.asked.push_back((client, Asked::Leave(why)));
    }
}

/// A thread's clients.
pub struct Fleet {
    reactor: Reactor,
    options: FleetOptions,
    clients: Vec<Client>,
    tokens: Tokens,
    sockets: Vec<Option<SocketId>>,
    /// The client that has a slot of the reactor.
    owners: Vec<u32>,
    /// Clients that connect as soon as there is room.
    waiting: VecDeque<u32>,
    connecting: usize,
    open: usize,
    /// How far the source addresses were moved on because one had no port left.
    sources_used_up: usize,
    failures: usize,
    failure: Option<String>,
    bytes_in: u64,
    bytes_out: u64,
    pool: Pool,
    buffer: Box<[u8]>,
    out: Vec<u8>,
    asked: VecDeque<(usize, Asked)>,
    /// Who is to connect again, and when.
    returns: BinaryHeap<Reverse<(Duration, usize)>>,
    outputs: Vec<(u32, usize, usize)>,
}

/// What a scenario may use of a fleet that is borrowed in parts.
macro_rules! context {
    ($fleet:expr, $now:expr) => {
        Context {
            asked: &mut $fleet.asked,
            waiting: &mut $fleet.waiting,
            returns: &mut $fleet.returns,
            now: $now,
        }
    };
}

impl Fleet {
    /// A fleet of so many clients, none of which is connected. Call it in the thread that runs it.
    pub fn new(options: FleetOptions, count: usize, tokens: Tokens) -> std::io::Result<Self> {
        let waker = Waker::new()?;
        let reactor = Reactor::new(waker, Options::default())?;
        Ok(Fleet {
            reactor,
            clients: (0..count).map(|_| Client::new(options.encoding)).collect(),
            sockets: vec![None; count],
            tokens,
            options,
            owners: Vec::new(),
            waiting: VecDeque::new(),
            connecting: 0,
            open: 0,
            sources_used_up: 0,
            failures: 0,
            failure: None,
            bytes_in: 0,
            bytes_out: 0,
            pool: Pool::default(),
            buffer: vec![0; 64 * 1024].into_boxed_slice(),
            out: Vec::new(),
            asked: VecDeque::new(),
            returns: BinaryHeap::new(),
            outputs: Vec::new(),
        })
    }

    /// A fleet with one client for every token, all of which connect as soon as it runs.
    pub fn with_tokens(options: FleetOptions, tokens: Vec<String>) -> std::io::Result<Self> {
        let count = tokens.len();
        let mut fleet = Fleet::new(options, count, Box::new(move |client| Ok(tokens[client].clone())))?;
        fleet.waiting.extend(0..count as u32);
        Ok(fleet)
    }

    /// Clients whose session stands.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Clients that are being connected.
    pub fn connecting(&self) -> usize {
        self.connecting
    }

    /// How many connections were over or did not come about.
    pub fn failures(&self) -> usize {
        self.failures
    }

    /// Why the first of them was.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Bytes that came and bytes that went since the last time this was asked.
    pub fn take_bytes(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.bytes_in), std::mem::take(&mut self.bytes_out))
    }

    /// Time since the fleet began.
    pub fn elapsed(&self) -> Duration {
        self.options.began.elapsed()
    }

    /// Turns until `until` says so or the time is over. Returns whether `until` said so.
    pub fn run<S: Scenario>(
        &mut self,
        scenario: &mut S,
        limit: Duration,
        mut until: impl FnMut(&mut Fleet, &mut S) -> bool,
    ) -> std::io::Result<bool> {
        let end = Instant::now() + limit;
        loop {
            if until(self, scenario) {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            self.turn(scenario)?;
        }
    }

    /// Lets clients ask something from outside a scenario's callbacks.
    pub fn prompt(&mut self, ask: impl FnOnce(&mut Context<'_>)) {
        let now = self.elapsed();
        ask(&mut context!(self, now));
    }

    /// 1. The scenario does what is due. 2. Clients connect. 3. Output goes out. 4. What came is told.
    fn turn<S: Scenario>(&mut self, scenario: &mut S) -> std::io::Result<()> {
        let now = self.elapsed();
        let next = scenario.turn(&mut context!(self, now));
        self.perform(scenario);
        self.connect_more(scenario);
        self.perform(scenario);
        self.flush();
        let next = next.map_or(Duration::MAX, |next| next.saturating_sub(self.elapsed()));
        self.reactor.wait(Some(next.min(self.options.wait_max)))?;
        while let Some(event) = self.reactor.next_event() {
            match event {
                Event::Connected(id) => self.opened(scenario, id),
                Event::ConnectFailed(id, errno) => {
                    let client = self.owners[id.slot as usize] as usize;
                    self.connecting -= 1;
                    self.lost(scenario, client, Ending::Unreachable(errno.to_string()));
                }
                Event::Readable(id) => self.readable(scenario, id),
                Event::Writable(id) => {
                    let _ = self.reactor.flush(id);
                }
                Event::HungUp(id) => self.reactor.close(id),
                Event::Accept | Event::Woken => {}
            }
            self.perform(scenario);
        }
        self.flush();
        Ok(())
    }

    fn connect_more<S: Scenario>(&mut self, scenario: &mut S) {
        let now = self.elapsed();
        while let Some(Reverse((at, client))) = self.returns.peek().copied()
            && at <= now
        {
            self.returns.pop();
            self.waiting.push_back(client as u32);
        }
        while self.connecting < self.options.connecting_max
            && let Some(client) = self.waiting.pop_front()
        {
            let client = client as usize;
            if self.sockets[client].is_none() {
                self.clients[client] = Client::new(self.options.encoding);
                self.connect(scenario, client);
            }
        }
    }

    fn connect<S: Scenario>(&mut self, scenario: &mut S, client: usize) {
        let now = self.elapsed();
        scenario.begun(&mut context!(self, now), client);
        let local = self.options.server.ip().is_loopback() && self.options.server.is_ipv4();
        for _ in 0..SOURCES_TRIED_MAX {
            let options =
                ConnectOptions { source: local.then(|| self.source(client)), ..ConnectOptions::default() };
            match self.reactor.connect(self.options.server, &options) {
                Ok(id) => {
                    self.connecting += 1;
                    self.sockets[client] = Some(id);
                    let slot = id.slot as usize;
                    if self.owners.len() <= slot {
                        self.owners.resize(slot + 1, u32::MAX);
                    }
                    self.owners[slot] = client as u32;
                    return;
                }
                Err(error) if local && has_no_port(error) => self.sources_used_up += 1,
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(|cause| format!(" ({cause})"));
                    let why = format!("{error}{}", cause.unwrap_or_default());
                    return self.lost(scenario, client, Ending::Unreachable(why));
                }
            }
        }
        self.lost(scenario, client, Ending::Unreachable("no source address has a port left".into()));
    }

    /// The address a client comes from.
    fn source(&self, client: usize) -> IpAddr {
        let step = client / PER_SOURCE + self.sources_used_up;
        let number = usize::from(self.options.first_source) + step * usize::from(self.options.source_stride);
        IpAddr::V4(Ipv4Addr::new(
            127,
            1 + (number / 62_500) as u8,
            (number / 250 % 250) as u8,
            (number % 250) as u8 + 1,
        ))
    }

    fn opened<S: Scenario>(&mut self, scenario: &mut S, id: SocketId) {
        let client = self.owners[id.slot as usize] as usize;
        let token = match (self.tokens)(client) {
            Ok(token) => token,
            Err(why) => {
                self.reactor.close(id);
                self.connecting -= 1;
                return self.lost(scenario, client, Ending::NoToken(why));
            }
        };
        let from = self.out.len();
        self.clients[client].open(&self.options.host, &self.options.path, &token, &mut self.out);
        self.outputs.push((client as u32, from, self.out.len()));
    }

    fn readable<S: Scenario>(&mut self, scenario: &mut S, id: SocketId) {
        let client = self.owners[id.slot as usize] as usize;
        let elapsed = self.elapsed();
        let Fleet { reactor, clients, pool, buffer, out, asked, waiting, returns, connecting, open, .. } =
            self;
        let from = out.len();
        let bytes = match reactor.read_into(id, buffer) {
            Read::Bytes(bytes) => bytes,
            Read::Blocked => return,
            Read::Closed | Read::Reset(_) => {
                reactor.close(id);
                match clients[client].stage() {
                    Stage::Open => *open -= 1,
                    _ => *connecting -= 1,
                }
                return self.lost(scenario, client, Ending::Broken);
            }
        };
        self.bytes_in += bytes.len() as u64;
        let mut stands = clients[client].stage() == Stage::Open;
        let mut over = None;
        clients[client].received(pool, Mono(elapsed.as_millis() as u64), bytes, out, &mut |said, _| {
            let mut context = Context { asked, waiting, returns, now: elapsed };
            match said {
                Said::Connected(connected) => {
                    *connecting -= 1;
                    *open += 1;
                    stands = true;
                    scenario.connected(&mut context, client, &connected);
                }
                Said::Over(why) => {
                    over.get_or_insert(why);
                }
                said => scenario.said(&mut context, client, said),
            }
        });
        if out.len() > from {
            self.outputs.push((client as u32, from, out.len()));
        }
        if let Some(why) = over {
            match stands {
                true => *open -= 1,
                false => *connecting -= 1,
            }
            reactor.close_after_flush(id);
            self.lost(scenario, client, why);
        }
    }

    /// A client has no connection any more; it was counted out already.
    fn lost<S: Scenario>(&mut self, scenario: &mut S, client: usize, why: Ending) {
        self.clients[client].close();
        self.sockets[client] = None;
        self.failures += 1;
        if self.failure.is_none() {
            self.failure = Some(format!("client {client}: {why}"));
        }
        let now = self.elapsed();
        scenario.said(&mut context!(self, now), client, Said::Over(why));
    }

    /// Does what the scenario asked for.
    fn perform<S: Scenario>(&mut self, scenario: &mut S) {
        while let Some((client, asked)) = self.asked.pop_front() {
            let Some(id) = self.sockets[client] else { continue };
            match asked {
                Asked::Command(id, command) => {
                    let from = self.out.len();
                    self.clients[client].request(id, command, &mut self.out);
                    self.outputs.push((client as u32, from, self.out.len()));
                }
                Asked::Leave(why) => {
                    if self.clients[client].stage() == Stage::Open {
                        self.open -= 1;
                        let from = self.out.len();
                        self.clients[client].leave(&mut self.out);
                        self.outputs.push((client as u32, from, self.out.len()));
                        self.flush();
                        self.reactor.close_after_flush(id);
                    } else {
                        self.connecting -= 1;
                        self.reactor.close(id);
                    }
                    self.lost(scenario, client, why);
                }
            }
        }
    }

    /// One system call for each client that has output.
    fn flush(&mut self) {
        self.outputs.sort_by_key(|(client, ..)| *client);
        for parts in self.outputs.chunk_by(|a, b| a.0 == b.0) {
            let Some(id) = self.sockets[parts[0].0 as usize] else { continue };
            for parts in parts.chunks(32) {
                let mut slices = [IoSlice::new(&[]); 32];
                for (slice, (_, from, to)) in slices.iter_mut().zip(parts) {
                    *slice = IoSlice::new(&self.out[*from..*to]);
                    self.bytes_out += (to - from) as u64;
                }
                if self.reactor.send(id, &slices[..parts.len()]).is_err() {
                    break;
                }
            }
        }
        self.outputs.clear();
        self.out.clear();
    }
}

/// Whether another source address would help.
fn has_no_port(error: ConnectError) -> bool {
    // EADDRNOTAVAIL and EADDRINUSE of errno(3).
    matches!(error, ConnectError::Source(errno) | ConnectError::Connect(errno)
        if matches!(std::io::Error::from(errno).kind(), std::io::ErrorKind::AddrNotAvailable | std::io::ErrorKind::AddrInUse))
}
