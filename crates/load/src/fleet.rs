//! Thousands of clients on one thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use model::Mono;
use protocol::{Command, Connected, Encoding, RequestId};
use reactor::{ConnectOptions, Event, Options, Reactor, Read, SocketId, Waker};
use websocket::Pool;

use crate::client::{Client, Said, Stage};

/// Connections from one source address to one port: below the 28,232 ephemeral ports Linux gives by default.
const PER_SOURCE: usize = 20_000;

/// How a fleet connects.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// The server.
    pub server: SocketAddr,
    /// Which encoding to speak.
    pub encoding: Encoding,
    /// Connections being made at the same time.
    pub connecting_max: usize,
    /// The first of the addresses of 127.0.0.0/8 to come from; each fleet of a process takes its own.
    pub first_source: u16,
}

/// What the clients of a fleet do once they are in.
pub trait Scenario {
    /// A client's session stands; what the server said then.
    fn connected(&mut self, context: &mut Context<'_>, client: usize, connected: &Connected);
    /// The server said something to a client, or its connection is over or did not come about.
    fn said(&mut self, context: &mut Context<'_>, client: usize, said: Said<'_>);
}

/// What a scenario may do: let clients ask, and let them come back.
pub struct Context<'a> {
    requests: &'a mut VecDeque<(usize, Asked)>,
    returns: &'a mut BinaryHeap<Reverse<(Duration, usize)>>,
    /// Time since the fleet began.
    pub now: Duration,
}

struct Asked {
    id: Option<RequestId>,
    command: Command<'static>,
}

impl Context<'_> {
    /// Lets a client ask something, after what it asked before.
    pub fn request(&mut self, client: usize, id: Option<RequestId>, command: Command<'static>) {
        self.requests.push_back((client, Asked { id, command }));
    }

    /// Lets a client whose connection is over connect again at that time.
    pub fn come_back(&mut self, client: usize, at: Duration) {
        self.returns.push(Reverse((at, client)));
    }
}

/// A thread's clients.
pub struct Fleet {
    reactor: Reactor,
    options: FleetOptions,
    began: Instant,
    clients: Vec<Client>,
    tokens: Vec<String>,
    sockets: Vec<Option<SocketId>>,
    /// The client that has a slot of the reactor.
    owners: Vec<u32>,
    next: usize,
    connecting: usize,
    open: usize,
    failures: Vec<String>,
    pool: Pool,
    buffer: Box<[u8]>,
    out: Vec<u8>,
    requests: VecDeque<(usize, Asked)>,
    /// Who is to connect again, and when.
    returns: BinaryHeap<Reverse<(Duration, usize)>>,
    outputs: Vec<(u32, usize, usize)>,
}

impl Fleet {
    /// A fleet with one client for every token, none of which is connected. Call it in the thread that runs it.
    pub fn new(options: FleetOptions, tokens: Vec<String>) -> std::io::Result<Self> {
        let waker = Waker::new()?;
        let reactor = Reactor::new(waker, Options::default())?;
        Ok(Fleet {
            reactor,
            began: Instant::now(),
            clients: tokens.iter().map(|_| Client::new(options.encoding)).collect(),
            sockets: vec![None; tokens.len()],
            tokens,
            options,
            owners: Vec::new(),
            next: 0,
            connecting: 0,
            open: 0,
            failures: Vec::new(),
            pool: Pool::default(),
            buffer: vec![0; 64 * 1024].into_boxed_slice(),
            out: Vec::new(),
            requests: VecDeque::new(),
            returns: BinaryHeap::new(),
            outputs: Vec::new(),
        })
    }

    /// Clients whose session stands.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Why clients are not, as far as that is known.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Time since the fleet began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Begins to connect, as many at a time as the options allow, and turns until `until` says so or the time is over. Returns whether
    /// `until` said so.
    pub fn run<S: Scenario>(
        &mut self,
        scenario: &mut S,
        limit: Duration,
        mut until: impl FnMut(&Fleet, &mut S) -> bool,
    ) -> std::io::Result<bool> {
        let end = Instant::now() + limit;
        loop {
            if until(self, scenario) {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            self.connect_more(scenario);
            self.turn(scenario)?;
        }
    }

    /// Lets clients ask something from outside a scenario's callbacks.
    pub fn prompt(&mut self, ask: impl FnOnce(&mut Context<'_>)) {
        let now = self.elapsed();
        ask(&mut Context { requests: &mut self.requests, returns: &mut self.returns, now });
        self.write_requests();
        self.flush();
    }

    fn connect_more<S: Scenario>(&mut self, scenario: &mut S) {
        while self.connecting < self.options.connecting_max && self.next < self.clients.len() {
            let client = self.next;
            self.next += 1;
            self.connect(scenario, client);
        }
        let now = self.elapsed();
        while let Some(Reverse((at, client))) = self.returns.peek().copied()
            && at <= now
        {
            self.returns.pop();
            if self.sockets[client].is_none() {
                self.clients[client] = Client::new(self.options.encoding);
                self.connect(scenario, client);
            }
        }
    }

    fn connect<S: Scenario>(&mut self, scenario: &mut S, client: usize) {
        let number = usize::from(self.options.first_source) + client / PER_SOURCE;
        let source = IpAddr::V4(Ipv4Addr::new(127, 1, (number / 250) as u8, (number % 250) as u8 + 1));
        let to = self.options.server;
        let source = (to.ip().is_loopback() && to.is_ipv4()).then_some(source);
        let options = ConnectOptions { source, ..ConnectOptions::default() };
        match self.reactor.connect(to, &options) {
            Ok(id) => {
                self.connecting += 1;
                self.sockets[client] = Some(id);
                let slot = id.slot as usize;
                if self.owners.len() <= slot {
                    self.owners.resize(slot + 1, u32::MAX);
                }
                self.owners[slot] = client as u32;
            }
            Err(error) => self.lost(scenario, client, format!("{error}: {error:?}")),
        }
    }

    fn turn<S: Scenario>(&mut self, scenario: &mut S) -> std::io::Result<()> {
        self.reactor.wait(Some(Duration::from_millis(20)))?;
        while let Some(event) = self.reactor.next_event() {
            match event {
                Event::Connected(id) => self.opened(id),
                Event::ConnectFailed(id, errno) => {
                    let client = self.owners[id.slot as usize] as usize;
                    self.connecting -= 1;
                    self.lost(scenario, client, format!("cannot connect: {errno}"));
                }
                Event::Readable(id) => self.readable(scenario, id),
                Event::Writable(id) => {
                    let _ = self.reactor.flush(id);
                }
                Event::HungUp(id) => self.reactor.close(id),
                Event::Accept | Event::Woken => {}
            }
            self.write_requests();
        }
        self.flush();
        Ok(())
    }

    fn opened(&mut self, id: SocketId) {
        let client = self.owners[id.slot as usize] as usize;
        let from = self.out.len();
        let host = self.options.server.to_string();
        self.clients[client].open(&host, &self.tokens[client], &mut self.out);
        self.outputs.push((client as u32, from, self.out.len()));
    }

    fn readable<S: Scenario>(&mut self, scenario: &mut S, id: SocketId) {
        let client = self.owners[id.slot as usize] as usize;
        let elapsed = self.began.elapsed();
        let Fleet { reactor, clients, pool, buffer, out, requests, returns, connecting, open, .. } = self;
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
                return self.lost(scenario, client, "the server closed the connection".into());
            }
        };
        let mut stands = clients[client].stage() == Stage::Open;
        let mut over = None;
        clients[client].received(pool, Mono(elapsed.as_millis() as u64), bytes, out, &mut |said, _| {
            let mut context = Context { requests, returns, now: elapsed };
            match said {
                Said::Connected(connected) => {
                    *connecting -= 1;
                    *open += 1;
                    stands = true;
                    scenario.connected(&mut context, client, &connected);
                }
                Said::Over(why) => over = Some(why),
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
    fn lost<S: Scenario>(&mut self, scenario: &mut S, client: usize, why: String) {
        self.clients[client].close();
        self.sockets[client] = None;
        self.failures.push(format!("client {client}: {why}"));
        let now = self.elapsed();
        let mut context = Context { requests: &mut self.requests, returns: &mut self.returns, now };
        scenario.said(&mut context, client, Said::Over(why));
    }

    fn write_requests(&mut self) {
        while let Some((client, Asked { id, command })) = self.requests.pop_front() {
            let from = self.out.len();
            self.clients[client].request(id, command, &mut self.out);
            self.outputs.push((client as u32, from, self.out.len()));
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
