//! A real server: started as its own process on a port of its own, and gone with the test, however that ends.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant, SystemTime};

use auth::{Grant, SigningKey, mint};
use model::{ConversationId, Span, Wall};
use rustix::process::{Pid, Signal, kill_process};

use crate::run::Place;

/// What signs the tokens of the tests.
const SECRET: &[u8] = b"a secret that only the tests of this folder know";

/// How a server is started. Its data lie in `data` of the place, its key beside it.
pub struct Start<'a> {
    /// The folder it runs in.
    pub place: &'a Place,
    /// Where it listens.
    pub address: SocketAddr,
    /// With so many shards.
    pub shards: u16,
    /// More settings, as `THRONG_…` variables.
    pub settings: Vec<(&'static str, String)>,
    /// The limit of open files, if it is not the one of the tests.
    pub descriptors: Option<u32>,
}

/// A running server.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    log: PathBuf,
}

impl<'a> Start<'a> {
    /// On a free port, with two shards; writes its configuration and its key.
    pub fn new(place: &'a Place) -> Start<'a> {
        place.write("secret", SECRET);
        place.write(
            "throng.toml",
            "data = \"data\"\n[[auth.keys]]\nfile = \"secret\"\nalgorithm = \"HS256\"\n",
        );
        Start { place, address: free_address(), shards: 2, settings: Vec::new(), descriptors: None }
    }

    /// With one more setting.
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.settings.push((name, value.to_string()));
        self
    }

    /// The command that serves, with nothing from the environment of the tests but the search path.
    pub fn command(&self) -> Command {
        let program = crate::run::program();
        let mut command = match self.descriptors {
            None => Command::new(program),
            Some(limit) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit -n {limit} && exec \"$0\" \"$@\"")]).arg(program);
                shell
            }
        };
        let (listen, shards) = (self.address.to_string(), self.shards.to_string());
        command
            .args(["serve", "--config", "throng.toml", "--listen", &listen, "--shards", &shards])
            .current_dir(self.place.path(""))
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(self.settings.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null());
        command
    }

    /// With limits of commands that no test meets.
    pub fn generous(self) -> Self {
        self.with("THRONG_COMMANDS_PER_SECOND", 1_000_000).with("THRONG_COMMANDS_BURST", 1_000_000)
    }

    /// Starts it and waits until it is ready.
    pub fn start(&self) -> Server {
        self.try_start().unwrap_or_else(|(status, said)| panic!("the server ended with {status}: {said}"))
    }

    /// Starts it and waits until it is ready, or has ended: then how, and what it said.
    ///
    /// # Errors
    /// When it ends instead of serving.
    pub fn try_start(&self) -> Result<Server, (ExitStatus, String)> {
        let said_before = fs::metadata(self.place.path("log")).map_or(0, |log| log.len() as usize);
        let mut server = self.spawn();
        match server.await_ready() {
            None => Ok(server),
            Some(status) => Err((status, server.log().split_off(said_before))),
        }
    }

    /// Starts it and waits for nothing.
    pub fn spawn(&self) -> Server {
        let log = self.place.path("log");
        // Appended to, so that what a server said before it was killed is still there.
        let file = File::options().create(true).append(true).open(&log).expect("a log file");
        let out = file.try_clone().expect("a second handle");
        let child = self.command().stdout(out).stderr(file).spawn().expect("the binary runs");
        Server { child, address: self.address, log }
    }
}

impl Server {
    /// Waits until it is ready, or has ended: then how.
    fn await_ready(&mut self) -> Option<ExitStatus> {
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return Some(status);
            }
            if self.serves() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server is not ready after 30 s: {}", self.log());
    }

    /// Whether it says so.
    pub fn is_ready(&self) -> bool {
        self.try_http("GET", "/readyz", None, "").is_ok_and(|(status, _)| status == 200)
    }

    /// Whether its shards turn; one whose disk takes no writes serves all the same.
    fn serves(&self) -> bool {
        let ready = self.try_http("GET", "/readyz", None, "");
        ready.is_ok_and(|(_, body)| body.contains(r#""shards_turning":true"#))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that it and its predecessors in the same place have printed.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log")
    }

    /// Ends it as a power failure would.
    pub fn kill(mut self) {
        self.child.kill().expect("a process of ours");
        self.child.wait().expect("a child of ours");
    }

    /// Asks it to stop, as a supervisor does.
    pub fn ask_to_stop(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("a process of ours");
    }

    /// Waits for its end and says how long that took.
    pub fn wait(&mut self, at_most: Duration) -> (ExitStatus, Duration) {
        let began = Instant::now();
        while began.elapsed() < at_most {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return (status, began.elapsed());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server has not ended after {at_most:?}");
    }

    /// Stops it as a supervisor does; it must succeed.
    pub fn stop(mut self) {
        self.ask_to_stop();
        let (status, _) = self.wait(Duration::from_secs(40));
        assert!(status.success(), "{status}");
    }

    /// Processor time it has used (user and system, fields 14 and 15 of proc_pid_stat(5), in 1/100 s).
    pub fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("it lives");
        let after_name = stat.rsplit(") ").next().expect("there is always a rest");
        let fields: Vec<&str> = after_name.split(' ').collect();
        let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
        Duration::from_millis(10 * (ticks(11) + ticks(12)))
    }

    /// Bytes of memory it has now (`VmRSS` of proc_pid_status(5), in KiB).
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        1_024 * kibibytes
    }

    /// One HTTP request on a connection of its own: status and body.
    pub fn http(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> (u16, String) {
        self.try_http(method, path, token, body).expect("an answer")
    }

    /// The same, when there may be no answer.
    ///
    /// # Errors
    /// When there is none.
    pub fn try_http(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &str,
    ) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{token}Content-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut body = String::new();
        reader.read_to_string(&mut body)?;
        Ok((status, body))
    }

    /// The sum over all labels of one metric.
    pub fn metric(&self, name: &str) -> u64 {
        let (status, page) = self.http("GET", "/metrics", None, "");
        assert_eq!(status, 200);
        let values: Vec<u64> = page
            .lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])))
            .map(|line| line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number"))
            .collect();
        assert!(!values.is_empty(), "there is no metric {name}");
        values.iter().sum()
    }

    /// The direct conversation of two users.
    pub fn direct(&self, token: &str, other: &str) -> ConversationId {
        self.conversation(token, "direct", &[other.to_owned()])
    }

    /// A new group of the token's user and these.
    pub fn group(&self, token: &str, others: &[String]) -> ConversationId {
        self.conversation(token, "group", others)
    }

    fn conversation(&self, token: &str, kind: &str, others: &[String]) -> ConversationId {
        let members: Vec<String> =
            others.iter().map(|other| format!(r#""{}""#, auth::user_id(other))).collect();
        let body = format!(r#"{{"kind":"{kind}","members":[{}]}}"#, members.join(","));
        let (status, answer) = self.http("POST", "/v1/conversations", Some(token), &body);
        assert!(matches!(status, 200 | 201), "{status} {answer}");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
        answer["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
    }

    /// The list of a user's conversations, with receipts.
    pub fn conversations(&self, token: &str) -> serde_json::Value {
        let (status, answer) = self.http("GET", "/v1/conversations", Some(token), "");
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the server's last words:\n{}", lines[lines.len().saturating_sub(20)..].join("\n"));
        }
    }
}

/// A token for one device, valid for an hour, signed with the key that [`Start`] configures.
pub fn token(user: &str, device: u32) -> String {
    token_for(user, device, Span::seconds(3_600))
}

/// As [`token`], valid for so long.
pub fn token_for(user: &str, device: u32, lifetime: Span) -> String {
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
    let key = SigningKey::from_secret(SECRET).expect("a secret long enough");
    let grant = Grant {
        user,
        device,
        session: "test",
        audience: "throng",
        issuer: None,
        issued_at: Wall(since_1970.as_millis() as u64),
        lifetime,
    };
    mint(&key, &grant)
}

/// A free address below the range from which the kernel gives out ports: while a server is down, a client that tries to come back
/// could otherwise be given the server's port as its own, and connect to itself.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 0..1_000 {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (std::process::id() as u16).wrapping_mul(101).wrapping_add(next) % 12_000;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port is free");
}
