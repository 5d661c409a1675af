//! Other people's servers, measured beside ours: see bench/peers/README.md.
//!
//! Owns how one is started, filled with idle WebSockets and looked at. Their code is in bench/peers/.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// In the order in which they are measured.
pub const PEERS: [&str; 4] = ["uws", "ws", "gorilla", "tungstenite"];

/// Longest time for the answer of a peer that already listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// A peer that runs. It is a process group of its own, which ends with this value.
struct Peer {
    child: Child,
    address: SocketAddr,
}

impl Peer {
    fn start(name: &str) -> Result<Peer, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .map_err(|error| error.to_string())?
            .port();
        let mut child = Command::new(root.join("bench/peers/run"))
            .args([name, &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("bench/peers/run: {error}"))?;
        let mut line = String::new();
        let said = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let peer = Peer { child, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        match said {
            Some(Ok(_)) if line.trim() == "up" => Ok(peer),
            _ => Err(format!("bench/peers/run {name} did not say `up`; what it said is above")),
        }
    }

    fn resident_bytes(&self) -> Result<u64, String> {
        load::resident_bytes(self.child.id())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Bytes of user space for each of so many idle WebSockets.
pub fn measure(name: &str, count: usize) -> Result<f64, String> {
    let peer = Peer::start(name)?;
    // The first connections make what is made once.
    let warm = open(peer.address, 100)?;
    drop(warm);
    std::thread::sleep(Duration::from_secs(1));
    let before = peer.resident_bytes()?;
    let sockets = open(peer.address, count)?;
    std::thread::sleep(Duration::from_secs(3));
    let after = peer.resident_bytes()?;
    drop(sockets);
    Ok((after as f64 - before as f64) / count as f64)
}

/// Opens WebSockets one after another.
fn open(address: SocketAddr, count: usize) -> Result<Vec<TcpStream>, String> {
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    let one = || -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0; 512];
            match stream.read(&mut byte)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => head.extend_from_slice(&byte[..read]),
            }
        }
        match head.starts_with(b"HTTP/1.1 101") {
            true => Ok(stream),
            false => Err(std::io::Error::other(String::from_utf8_lossy(&head).into_owned())),
        }
    };
    (0..count).map(|_| one().map_err(|error| error.to_string())).collect()
}
