//! A server to measure: started as its own process on a free port with a folder of its own, and ended with the benchmark.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use auth::{Grant, SigningKey, mint};
use model::{ConversationId, Span, UserId, Wall};

use crate::sample::machine::kibibytes;

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// How many shards.
    pub shards: u16,
    /// The folder of its data.
    pub data: PathBuf,
    /// More environment, as `THRONG_…` settings.
    pub settings: Vec<(&'static str, String)>,
}

/// A running server.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    minter: Minter,
}

/// Makes the tokens of a benchmark's users, in any thread.
#[derive(Debug, Clone)]
pub struct Minter(Arc<SigningKey>);

/// User `n` of a benchmark: a UUID that ends in `n`.
fn user(n: usize) -> UserId {
    let mut id = *b"throng load\0\0\0\0\0";
    id[6] = 0x40 | (id[6] & 0x0f);
    id[8] = 0x80 | (id[8] & 0x3f);
    id[12..].copy_from_slice(&(n as u32).to_be_bytes());
    UserId(id)
}

impl Minter {
    /// A token for device 1 of user `n`, valid for a day.
    pub fn token(&self, n: usize) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let grant = Grant {
            user: &user(n).to_string(),
            device: 1,
            session: "benchmark",
            audience: "throng",
            issuer: None,
            issued_at: Wall(now * 1_000),
            lifetime: Span::seconds(24 * 3600),
        };
        mint(&self.0, &grant)
    }
}

impl Server {
    /// Starts `throng serve` from beside this program and waits until it is ready.
    pub fn start(options: &ServerOptions) -> Result<Server, String> {
        Server::start_at(options, free_address()?)
    }

    /// The same at an address that is known.
    pub fn start_at(options: &ServerOptions, address: SocketAddr) -> Result<Server, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("throng");
        if !program.exists() {
            return Err(format!(
                "there is no {}: build it with `cargo build --release -p throng`",
                program.display()
            ));
        }
        let secret = options.data.join("bench.secret");
        fs::create_dir_all(&options.data).map_err(|error| error.to_string())?;
        fs::write(&secret, b"a secret for benchmarks that everybody may know")
            .map_err(|error| error.to_string())?;
        let config = options.data.join("bench.toml");
        let text =
            format!("[[auth.keys]]\nfile = {:?}\nalgorithm = \"HS256\"\n", secret.display().to_string());
        fs::write(&config, text).map_err(|error| error.to_string())?;
        let mut command = Command::new(&program);
        command.arg("serve").args([
            "--listen",
            &address.to_string(),
            "--shards",
            &options.shards.to_string(),
        ]);
        command.arg("--data").arg(&options.data).arg("--config").arg(&config);
        command.env("THRONG_LOG_LEVEL", "warn");
        for (name, value) in &options.settings {
            command.env(name, value);
        }
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let key = SigningKey::from_secret(b"a secret for benchmarks that everybody may know")
            .map_err(|error| error.to_string())?;
        let mut server = Server { child, address, minter: Minter(Arc::new(key)) };
        server.await_ready()?;
        Ok(server)
    }

    fn await_ready(&mut self) -> Result<(), String> {
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the server ended at its start: {status}"));
            }
            if self.http("GET", "/readyz", None, "").is_ok_and(|(status, _)| status == 200) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("the server did not become ready in a minute".into())
    }

    /// A token for device 1 of user `n`, valid for a day.
    pub fn token(&self, n: usize) -> String {
        self.minter.token(n)
    }

    /// What makes them.
    pub fn minter(&self) -> Minter {
        self.minter.clone()
    }

    /// Makes the direct conversation of two users, over REST.
    pub fn direct(&self, a: usize, b: usize) -> Result<ConversationId, String> {
        let body = format!(r#"{{"kind":"direct","members":["{}"]}}"#, user(b));
        let (status, answer) = self.http("POST", "/v1/conversations", Some(&self.token(a)), &body)?;
        if !matches!(status, 200 | 201) {
            return Err(format!("the conversation was not made: {status} {answer}"));
        }
        let answer: serde_json::Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let id = answer["id"].as_str().ok_or("the answer has no id")?;
        id.parse().map_err(|_| "the id is no UUID".to_owned())
    }

    /// One HTTP request on a connection of its own.
    pub fn http(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &str,
    ) -> Result<(u16, String), String> {
        let told = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(self.address).map_err(told)?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(told)?;
        let authorization =
            token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{authorization}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .map_err(told)?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).map_err(told)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("no HTTP status")?;
        let mut rest = String::new();
        reader.read_to_string(&mut rest).map_err(told)?;
        let body = rest.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Ok((status, body.to_owned()))
    }

    /// The sum over all shards of one metric.
    pub fn metric(&self, name: &str) -> Result<f64, String> {
        let (_, text) = self.http("GET", "/metrics", None, "")?;
        let values = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ') || rest.starts_with('{'))
        });
        Ok(values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Resident bytes of the server's process, from `/proc`.
    pub fn resident_bytes(&self) -> Result<u64, String> {
        resident_bytes(self.child.id())
    }

    /// Processor time the server has used.
    pub fn cpu(&self) -> Result<Duration, String> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))
            .map_err(|error| error.to_string())?;
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
        // USER_HZ is 100 on every Linux architecture that matters here.
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) -> Result<(), String> {
        self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// Ends it as an operator would, and waits.
    pub fn stop(mut self) -> Result<(), String> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| error.to_string())?;
        let end = Instant::now() + Duration::from_secs(40);
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return if status.success() {
                    Ok(())
                } else {
                    Err(format!("the server ended with {status}"))
                };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("the server did not stop in 40 s".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Resident bytes of a process, from `/proc`.
pub fn resident_bytes(pid: u32) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|error| format!("process {pid}: {error}"))?;
    kibibytes(&status, "VmRSS").ok_or_else(|| format!("process {pid} has no VmRSS"))
}

/// Below the ports that the kernel gives out: a client that knocks while the server is down could be given the server's own.
fn free_address() -> Result<SocketAddr, String> {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    let mut addresses = (first..first + 1_000).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    addresses.find(|address| std::net::TcpListener::bind(address).is_ok()).ok_or("no port is free".to_owned())
}
