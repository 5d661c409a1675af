//! Descriptors as such: running out of them, who shares them, whose port it is.

use std::io::{BufRead as _, BufReader, IoSlice, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reactor::{AcceptError, Event, ListenOptions, Listener, Reactor, Read, free_address, unshare_files};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::driver::{LOOPBACK, reactor};

const ROLE: &str = "THRONG_TEST_FEW_DESCRIPTORS";
const DESCRIPTORS: u64 = 64;
const KNOCKS: usize = 200;
/// How long the crowd stands before the door.
const SIEGE: Duration = Duration::from_secs(3);

/// The limit is the process's, so the reactor runs in a child: this same test, told by its environment which it is.
#[test]
fn out_of_descriptors_those_inside_are_served_and_nobody_spins_and_accepting_resumes() {
    if std::env::var_os(ROLE).is_some() {
        return serve_with_few_descriptors();
    }
    let server = Server::start();
    let crowd: Vec<TcpStream> = (0..KNOCKS).filter_map(|_| TcpStream::connect(server.address).ok()).collect();
    let before = server.cpu_seconds();
    let began = Instant::now();
    let (inside, waiting) = ask_all(crowd);
    assert!(inside.len() > 30 && inside.len() < DESCRIPTORS as usize, "{} inside", inside.len());
    assert!(waiting.len() > KNOCKS / 2);
    while began.elapsed() < SIEGE {
        for peer in &inside {
            assert!(echoes(peer), "somebody inside is not served");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    // Each time accepting rests, whoever is first in line is turned away instead of waiting for nobody.
    assert!(waiting.iter().any(is_closed), "nobody was turned away");
    let used = server.cpu_seconds() - before;
    assert!(used < 0.5, "{used} s of CPU in {SIEGE:?}");

    // As many leave as come in; the line moves.
    let (leaving, staying) = inside.split_at(10);
    for peer in leaving {
        peer.shutdown(std::net::Shutdown::Both).expect("open");
    }
    let began = Instant::now();
    let mut newcomers = 0;
    while newcomers < 8 {
        assert!(began.elapsed() < Duration::from_secs(20), "{newcomers} newcomers");
        // They have asked already, and are answered once they are in.
        newcomers += waiting.iter().filter(|peer| answers(peer, Duration::from_millis(2))).count();
    }
    assert!(staying.iter().all(echoes));
    let last_words = server.stop();
    assert!(last_words.contains("exhausted: true"), "the caller is told: {last_words}");
}

struct Server {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    address: SocketAddr,
}

impl Server {
    fn start() -> Server {
        let name =
            "descriptors::out_of_descriptors_those_inside_are_served_and_nobody_spins_and_accepting_resumes";
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let address = loop {
            let mut line = String::new();
            assert_ne!(output.read_line(&mut line).expect("output"), 0, "the child said nothing");
            if let Some((_, address)) = line.split_once("listening on ") {
                break address.trim().parse().expect("an address");
            }
        };
        Server { child, output, address }
    }

    /// User and system time (fields 14 and 15 of /proc/PID/stat, in hundredths).
    fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a process");
        let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
        let ticks = |field: &str| field.parse::<f64>().expect("a number");
        (ticks(fields[11]) + ticks(fields[12])) / 100.0
    }

    fn stop(mut self) -> String {
        drop(self.child.stdin.take());
        let mut words = String::new();
        self.output.read_to_string(&mut words).expect("output");
        assert!(self.child.wait().expect("a child").success(), "{words}");
        words
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a byte to each, and parts those that get it back from those that wait for a place (or were turned away).
fn ask_all(crowd: Vec<TcpStream>) -> (Vec<TcpStream>, Vec<TcpStream>) {
    crowd.iter().for_each(ask);
    let (mut inside, mut waiting) = (Vec::new(), crowd);
    loop {
        let (more, rest): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|peer| answers(peer, Duration::from_millis(2)));
        waiting = rest;
        if more.is_empty() && !inside.is_empty() {
            return (inside, waiting);
        }
        inside.extend(more);
    }
}

/// Those turned away cannot be asked, which their silence will show.
fn ask(mut peer: &TcpStream) {
    let _ = peer.write_all(b"x");
}

fn answers(mut peer: &TcpStream, within: Duration) -> bool {
    peer.set_read_timeout(Some(within)).expect("a timeout");
    let mut byte = [0];
    matches!(peer.read(&mut byte), Ok(1)) && byte == *b"x"
}

fn is_closed(peer: &TcpStream) -> bool {
    peer.set_nonblocking(true).expect("open");
    let looked = peer.peek(&mut [0]);
    peer.set_nonblocking(false).expect("open");
    match looked {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

fn echoes(peer: &TcpStream) -> bool {
    ask(peer);
    answers(peer, Duration::from_secs(10))
}

fn serve_with_few_descriptors() {
    let few = Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
    setrlimit(Resource::Nofile, few).expect("a lower limit");
    let mut reactor = reactor();
    let address = reactor.listen(LOOPBACK, &ListenOptions::default()).expect("a free port");
    println!("listening on {address}");
    let waker = reactor.waker().clone();
    // The end of the input is the parent's word to stop.
    let parent = std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        waker.wake();
    });
    let mut exhausted = false;
    loop {
        reactor.wait(None).expect("a wait");
        while let Some(event) = reactor.next_event() {
            match event {
                Event::Woken => {
                    println!("exhausted: {exhausted}");
                    return parent.join().expect("the parent's thread");
                }
                Event::Accept => match reactor.accept_some(64, &mut Vec::new()) {
                    Ok(()) => {}
                    Err(AcceptError::Exhausted(errno)) => {
                        assert_eq!(errno, Errno::MFILE);
                        exhausted = true;
                    }
                    Err(error) => panic!("{error:?}"),
                },
                Event::Readable(id) => echo(&mut reactor, id),
                event => panic!("{event:?}"),
            }
        }
    }
}

fn echo(reactor: &mut Reactor, id: reactor::SocketId) {
    let mut buffer = [0; 64];
    match reactor.read_into(id, &mut buffer) {
        Read::Bytes(bytes) => {
            if reactor.send(id, &[IoSlice::new(bytes)]).is_err() {
                reactor.close(id);
            }
        }
        Read::Blocked => {}
        Read::Closed | Read::Reset(_) => reactor.close(id),
    }
}

#[test]
fn a_table_of_its_own_keeps_what_was_open_and_shows_nobody_what_comes() {
    let (near, _far) = rustix::pipe::pipe().expect("a pipe");
    let before = name_of(&near);
    let parted = std::thread::spawn(move || {
        // SAFETY: this thread makes, uses and drops its descriptors itself; `near` it only looks at by its number.
        if let Err(error) = unsafe { unshare_files() } {
            // Some containers refuse; then the table is still shared, which is what the caller must cope with.
            assert!(matches!(error.0, Errno::PERM | Errno::NOSYS), "{error:?}");
            return;
        }
        let (own, _own_far) = rustix::pipe::pipe().expect("a pipe");
        let number = own.as_raw_fd();
        assert_eq!(link(&format!("/proc/thread-self/fd/{number}")), Some(name_of(&own)));
        let elsewhere = link(&format!("/proc/{}/fd/{number}", std::process::id()));
        assert_ne!(elsewhere, Some(name_of(&own)), "the main thread sees it");
        let near = near.as_raw_fd();
        assert_eq!(link(&format!("/proc/thread-self/fd/{near}")), Some(before));
    });
    parted.join().expect("the thread");
}

/// What the kernel calls a pipe: its inode tells it from every other.
fn name_of(pipe: &OwnedFd) -> String {
    format!("pipe:[{}]", rustix::fs::fstat(pipe).expect("an open descriptor").st_ino)
}

fn link(path: &str) -> Option<String> {
    std::fs::read_link(path).ok().map(|name| name.to_string_lossy().into_owned())
}

#[test]
fn a_port_somebody_listens_on_is_not_free_even_if_it_could_be_shared() {
    let first = Listener::bind(LOOPBACK, &ListenOptions::default()).expect("a free port");
    let error = free_address(first.address()).expect_err("it is taken");
    assert_eq!((error.address, error.errno), (first.address(), Errno::ADDRINUSE));
    // The shards of one server do share it.
    let second = Listener::bind(first.address(), &ListenOptions::default()).expect("a shared port");
    assert_eq!(first.address(), second.address());
    drop((first, second));
    let free = free_address(LOOPBACK).expect("some port");
    assert_ne!(free.port(), 0);
    Listener::bind(free, &ListenOptions::default()).expect("it was free");
}
