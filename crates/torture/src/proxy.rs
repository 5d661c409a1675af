//! A TCP proxy that is a bad network: it delays, splits, stalls, resets, half-closes and cuts off, as a seed decides.
//!
//! Owns its threads, one for each connection, which holds both sockets of it. Knows bytes only. It never changes or reorders any: what
//! arrives is a beginning of what was sent.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;

use crate::chance::Chance;

/// Bytes that one direction holds back at most; more waits in the kernel.
const HELD_MAX: usize = 64 * 1024;
/// How often a connection looks whether the proxy is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest wait for the server's side of a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Shortest and longest stall that ends, in milliseconds.
const STALL: (u64, u64) = (200, 2_000);

/// How long a connection with a frozen direction is kept.
pub const FROZEN_MAX: Duration = Duration::from_secs(30);

/// What can befall a connection between two pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Trouble {
    /// One direction stands still for a while.
    Stall,
    /// One direction stands still for good, without a word; after [`FROZEN_MAX`] both sides are reset.
    Freeze,
    /// A part of a piece still arrives, then both sides are closed.
    Cut,
    /// A part of a piece still arrives, then both sides are reset.
    Reset,
    /// One direction is closed after a part of a piece; the other goes on.
    HalfClose,
}

impl Trouble {
    /// All there is.
    pub const ALL: [Trouble; 5] =
        [Trouble::Stall, Trouble::Freeze, Trouble::Cut, Trouble::Reset, Trouble::HalfClose];
}

/// How bad the network is.
#[derive(Debug, Clone)]
pub struct Nature {
    /// Each piece waits up to so long.
    pub delay_max: Duration,
    /// The longest piece; shorter ones are as likely.
    pub piece_max: usize,
    /// What may befall it.
    pub troubles: Vec<Trouble>,
    /// Of ten thousand pieces so many meet trouble.
    pub troubled: u64,
}

impl Nature {
    /// Nothing is lost: it only delays and splits.
    pub fn slow() -> Nature {
        Nature { delay_max: Duration::from_millis(3), piece_max: 200, troubles: Vec::new(), troubled: 0 }
    }

    /// Everything happens.
    pub fn bad() -> Nature {
        Nature { troubles: Trouble::ALL.to_vec(), troubled: 20, ..Nature::slow() }
    }
}

/// Ends with its owner, and all its connections with it.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    to: SocketAddr,
    nature: Nature,
    seed: u64,
    stop: AtomicBool,
    connections: AtomicU64,
    happened: [AtomicU64; Trouble::ALL.len()],
}

impl Proxy {
    /// Before the server there.
    pub fn start(to: SocketAddr, nature: Nature, seed: u64) -> Proxy {
        assert!(nature.piece_max > 0 && (nature.troubled == 0 || !nature.troubles.is_empty()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        listener.set_nonblocking(true).expect("a socket of ours");
        let shared = Arc::new(Shared {
            to,
            nature,
            seed,
            stop: AtomicBool::new(false),
            connections: AtomicU64::new(0),
            happened: Default::default(),
        });
        let acceptor = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Proxy { address, shared, acceptor: Some(acceptor) }
    }

    /// Connections it has carried.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(SeqCst)
    }

    /// How often something befell one.
    pub fn happened(&self, trouble: Trouble) -> u64 {
        self.shared.happened[trouble as usize].load(SeqCst)
    }

    /// All of it, for people to read.
    pub fn describe(&self) -> String {
        let counts = Trouble::ALL.map(|trouble| format!("{trouble:?} {}", self.happened(trouble)));
        format!("{} connections through the proxy: {}", self.connections(), counts.join(", "))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !shared.stop.load(SeqCst) {
        match listener.accept() {
            Ok((client, _)) => {
                let number = shared.connections.fetch_add(1, SeqCst);
                let shared = Arc::clone(shared);
                threads.push(std::thread::spawn(move || carry(client, number, &shared)));
                threads.retain(|thread| !thread.is_finished());
            }
            Err(_) => wait(&mut [PollFd::new(listener, PollFlags::IN)], LOOK_EVERY),
        }
    }
    threads.into_iter().for_each(|thread| drop(thread.join()));
}

/// Waits until something of this can be done, or so long.
fn wait(sockets: &mut [PollFd<'_>], at_most: Duration) {
    let at_most = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
    // Interrupted or not: whoever waits looks again.
    let _ = poll(sockets, Some(&at_most));
}

/// One connection, from its acceptance to its end.
fn carry(client: TcpStream, number: u64, shared: &Shared) {
    let Ok(server) = TcpStream::connect_timeout(&shared.to, CONNECT_MAX) else {
        return reset(client);
    };
    for socket in [&client, &server] {
        let set = socket.set_nodelay(true).and_then(|()| socket.set_nonblocking(true));
        set.expect("a socket of ours");
    }
    let seed = Chance::from_seed(shared.seed ^ number.rotate_left(32)).between(0, u64::MAX - 1);
    let mut ways = [Way::new(seed), Way::new(!seed)];
    let sockets = [client, server];
    let end = loop {
        if shared.stop.load(SeqCst) {
            break End::Orderly;
        }
        let now = Instant::now();
        let mut ended = None;
        for (from, way) in ways.iter_mut().enumerate() {
            ended = ended.or(way.carry(&sockets[from], &sockets[1 - from], shared, now));
        }
        match ended {
            Some(end) => break end,
            None if ways.iter().all(|way| way.closed) => break End::Orderly,
            None if ways.iter().any(|way| way.frozen.is_some_and(|at| now - at > FROZEN_MAX)) => {
                break End::Reset;
            }
            None => {}
        }
        let [up, down] = &ways;
        let interest = |reads: &Way, writes: &Way| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reads.has_room());
            flags.set(PollFlags::OUT, writes.blocked);
            flags
        };
        let due = [up, down].into_iter().filter_map(Way::due).min();
        let at_most = due.map_or(LOOK_EVERY, |due| due.saturating_duration_since(now).min(LOOK_EVERY));
        let mut polled =
            [PollFd::new(&sockets[0], interest(up, down)), PollFd::new(&sockets[1], interest(down, up))];
        wait(&mut polled, at_most);
        // A side that is gone is told whatever was asked for, over and over; it is seen when it is read from.
        let gone = polled.iter().any(|socket| socket.revents().intersects(PollFlags::ERR | PollFlags::HUP));
        if gone {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    if end == End::Reset {
        sockets.into_iter().for_each(reset);
    }
}

/// Ends a connection with RST.
fn reset(socket: TcpStream) {
    let _ = set_socket_linger(&socket, Some(Duration::ZERO));
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Orderly,
    Reset,
}

/// One direction of a connection.
struct Way {
    chance: Chance,
    held: VecDeque<u8>,
    /// The sender has sent all it will.
    finished: bool,
    /// And the receiver was told.
    closed: bool,
    frozen: Option<Instant>,
    /// The receiver takes nothing at present.
    blocked: bool,
    /// What is left of the piece that goes over now.
    piece: usize,
    /// Nothing goes over before.
    not_before: Instant,
}

impl Way {
    fn new(seed: u64) -> Way {
        Way {
            chance: Chance::from_seed(seed),
            held: VecDeque::new(),
            finished: false,
            closed: false,
            frozen: None,
            blocked: false,
            piece: 0,
            not_before: Instant::now(),
        }
    }

    fn has_room(&self) -> bool {
        !self.finished && self.frozen.is_none() && self.held.len() < HELD_MAX
    }

    /// When it has something to do without being asked.
    fn due(&self) -> Option<Instant> {
        (self.frozen.is_none() && !self.blocked && !self.held.is_empty()).then_some(self.not_before)
    }

    /// Carries what there is and what may go; says when that was the end of the connection.
    fn carry(&mut self, from: &TcpStream, to: &TcpStream, shared: &Shared, now: Instant) -> Option<End> {
        if self.has_room()
            && let Err(end) = self.read(from)
        {
            return Some(end);
        }
        while !self.held.is_empty() && self.frozen.is_none() && now >= self.not_before {
            if self.piece == 0 {
                if let Some(end) = self.begin(to, shared, now) {
                    return Some(end);
                }
                continue;
            }
            match self.write(to, self.piece) {
                Ok(0) => break,
                Ok(count) => self.piece -= count,
                Err(end) => return Some(end),
            }
            if self.piece == 0 {
                let delay = self.chance.between(0, shared.nature.delay_max.as_micros() as u64);
                self.not_before = now + Duration::from_micros(delay);
            }
        }
        if self.finished && self.held.is_empty() && !self.closed {
            self.close(to);
        }
        None
    }

    /// The next piece: how long it is, and whether trouble comes with it.
    fn begin(&mut self, to: &TcpStream, shared: &Shared, now: Instant) -> Option<End> {
        let nature = &shared.nature;
        self.piece = (self.chance.between(1, nature.piece_max as u64) as usize).min(self.held.len());
        if self.chance.between(1, 10_000) > nature.troubled {
            return None;
        }
        let trouble = nature.troubles[self.chance.between(1, nature.troubles.len() as u64) as usize - 1];
        shared.happened[trouble as usize].fetch_add(1, SeqCst);
        match trouble {
            Trouble::Stall => {
                self.not_before = now + Duration::from_millis(self.chance.between(STALL.0, STALL.1));
                None
            }
            Trouble::Freeze => {
                self.frozen = Some(now);
                None
            }
            Trouble::Cut => self.part(to).err().or(Some(End::Orderly)),
            Trouble::Reset => self.part(to).err().or(Some(End::Reset)),
            Trouble::HalfClose => {
                let wrong = self.part(to).err();
                self.held.clear();
                self.finished = true;
                wrong
            }
        }
    }

    /// Some of the piece, the rest of which is lost.
    fn part(&mut self, to: &TcpStream) -> Result<usize, End> {
        let part = self.chance.between(0, self.piece as u64) as usize;
        self.write(to, part)
    }

    fn read(&mut self, from: &TcpStream) -> Result<(), End> {
        let mut bytes = [0; 16 * 1024];
        match (&mut &*from).read(&mut bytes) {
            Ok(0) => self.finished = true,
            Ok(count) => self.held.extend(&bytes[..count]),
            Err(error) if is_passing(&error) => {}
            Err(_) => return Err(End::Reset),
        }
        Ok(())
    }

    /// At most so many bytes.
    fn write(&mut self, to: &TcpStream, at_most: usize) -> Result<usize, End> {
        let (first, _) = self.held.as_slices();
        let some = &first[..at_most.min(first.len())];
        match (&mut &*to).write(some) {
            Ok(count) => {
                self.blocked = count < some.len();
                self.held.drain(..count);
                Ok(count)
            }
            Err(error) if is_passing(&error) => {
                self.blocked = true;
                Ok(0)
            }
            Err(_) => Err(End::Reset),
        }
    }

    fn close(&mut self, to: &TcpStream) {
        // The receiver may be gone already, which the other direction sees.
        let _ = to.shutdown(Shutdown::Write);
        self.closed = true;
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
