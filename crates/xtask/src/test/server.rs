//! A server of its own for one step: on a free port, in a folder of its own, ended with the step.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{self, Service};
use crate::repository::Repository;

/// From its start until it answers.
const START_LIMIT: Duration = Duration::from_secs(20);
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A running server.
pub struct Server {
    /// `http://…`, without a path.
    pub address: String,
    /// The file with the secret its tokens are signed with.
    pub secret: PathBuf,
    // In this order: the server ends before its folder goes.
    _service: Service,
    _data: Folder,
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Starts the release binary with `--dev` and waits until it answers.
pub fn start(repository: &Repository) -> Result<Server, String> {
    let binary = repository.target().join("release/throng");
    if !binary.exists() {
        return Err("there is no release build; the step `build` makes it".to_owned());
    }
    let data = Folder(std::env::temp_dir().join(format!("throng-xtask-{}", std::process::id())));
    let complain = |error: std::io::Error| format!("cannot start the server: {error}");
    fs::create_dir_all(&data.0).map_err(complain)?;
    // Others sign their tokens with a secret, so the key is not the pair that `--dev` would make by itself.
    let program = binary.to_string_lossy();
    let mut generate = repository.command(&program);
    generate.args(["keys", "generate", "--algorithm", "hs256", "--data"]).arg(&data.0);
    process::run(generate, START_LIMIT).outcome?;
    let listen = free_address().map_err(complain)?;
    let mut command = repository.command(&program);
    command.args(["serve", "--dev", "--shards", "2", "--listen", &listen.to_string(), "--data"]).arg(&data.0);
    let mut service = Service::start(command).map_err(complain)?;
    let end = Instant::now() + START_LIMIT;
    while !answers(listen) {
        if !service.is_running() {
            return Err("the server ended before it answered".to_owned());
        }
        if Instant::now() > end {
            return Err(format!("the server did not answer within {} s", START_LIMIT.as_secs()));
        }
        thread::sleep(ASK_EVERY);
    }
    let secret = data.0.join("keys/signing.secret");
    Ok(Server { address: format!("http://{listen}"), secret, _service: service, _data: data })
}

/// A port that was free a moment ago.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn answers(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET /livez HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok(&head[9..] == b"200")
    };
    ask().unwrap_or(false)
}
