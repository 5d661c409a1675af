//! How many messages a second the engine commits: batches of 1,000 appends, each with an acknowledgement of the message before it in its
//! conversation, over direct conversations with one device on each side, from one thread.
//!
//! `cargo run --release -p store-sqlite --example commit_rate -- [conversations=1000] [batches=300] [payload=200]
//! [ids=ordered|random] [directory=commit-rate-data]`
//!
//! Ordered client ids begin with the time, as UUIDs of version 7 do.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::{ClientId, ConversationId, ConversationKind, DeviceId, DeviceKey, Payload, Seq, UserId, Wall};
use rustix::time::{ClockId, clock_gettime};
use store::{Engine, Reply, Request};
use store_sqlite::{Numbers, Options, SqliteStore};

const BATCH: usize = 1_000;

struct Arguments {
    conversations: usize,
    batches: usize,
    payload: usize,
    ordered: bool,
    directory: PathBuf,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let directory = PathBuf::from("commit-rate-data");
    let mut arguments =
        Arguments { conversations: 1_000, batches: 300, payload: 200, ordered: true, directory };
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("conversations", number)) => arguments.conversations = number.parse()?,
            Some(("batches", number)) => arguments.batches = number.parse()?,
            Some(("payload", number)) => arguments.payload = number.parse()?,
            Some(("ids", "ordered")) => arguments.ordered = true,
            Some(("ids", "random")) => arguments.ordered = false,
            Some(("directory", path)) => arguments.directory = path.into(),
            _ => {
                return Err(format!(
                    "{argument} is none of conversations=, batches=, payload=, ids=, directory="
                )
                .into());
            }
        }
    }
    Ok(arguments)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let directory = &arguments.directory;
    std::fs::create_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let result = run(&arguments);
    std::fs::remove_dir_all(directory)?;
    result
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut store = SqliteStore::open(&arguments.directory, &Options::default())?;
    fill(&mut store, arguments.conversations)?;
    let gauges = store.gauges();
    let mut traffic = Traffic::new(arguments);
    let (mut batch, mut replies) = (Vec::new(), Vec::new());
    let (mut times, mut copies) = (Vec::new(), Vec::new());
    let mut before = gauges.read();
    let cpu = clock(ClockId::ProcessCPUTime);
    let own_cpu = clock(ClockId::ThreadCPUTime);
    let mut making = Duration::ZERO;
    for _ in 0..arguments.batches {
        let began = clock(ClockId::ThreadCPUTime);
        traffic.fill(&mut batch);
        making += clock(ClockId::ThreadCPUTime) - began;
        replies.clear();
        let began = Instant::now();
        store.commit(&batch, &mut replies)?;
        times.push(began.elapsed());
        let numbers = gauges.read();
        if numbers.checkpoints > before.checkpoints {
            copies.push(numbers.checkpoint);
        }
        before = numbers;
        assert!(replies.iter().all(|reply| matches!(reply, Reply::Appended { .. } | Reply::Done)));
    }
    let own_cpu = clock(ClockId::ThreadCPUTime) - own_cpu - making;
    let cpu = clock(ClockId::ProcessCPUTime) - cpu - making;
    report(arguments, times, copies, own_cpu, cpu, before);
    Ok(())
}

fn report(
    arguments: &Arguments,
    mut times: Vec<Duration>,
    mut copies: Vec<Duration>,
    own_cpu: Duration,
    cpu: Duration,
    numbers: Numbers,
) {
    let requests = 2 * BATCH * arguments.batches;
    let took: Duration = times.iter().sum();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
    let second = took.as_secs_f64();
    times.sort_unstable();
    copies.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!(
        "{} conversations, payloads of {} bytes, {} client ids, {} batches of {BATCH} appends and {BATCH} acknowledgements",
        arguments.conversations,
        arguments.payload,
        if arguments.ordered { "ordered" } else { "random" },
        arguments.batches
    );
    println!(
        "{:.0} appends/s and as many acknowledgements/s: {:.0} requests/s, {:.2} µs a request",
        requests as f64 / 2.0 / second,
        requests as f64 / second,
        each(took)
    );
    println!(
        "of which {:.2} µs CPU of this thread; with the one that copies {:.2} µs",
        each(own_cpu),
        each(cpu)
    );
    println!("a batch: p50 {:?}, p95 {:?}, p99 {:?}, longest {:?}", at(50), at(95), at(99), at(100));
    println!(
        "the log was copied {} times, holding up this thread for {:?} at most, {:?} in all; the database has {} MiB",
        copies.len(),
        copies.last().copied().unwrap_or_default(),
        copies.iter().sum::<Duration>(),
        numbers.database_bytes >> 20
    );
}

/// Messages to conversations drawn at random.
struct Traffic {
    heads: Vec<u64>,
    payload: Payload,
    ordered: bool,
    random: u64,
    sent: u64,
}

impl Traffic {
    fn new(arguments: &Arguments) -> Self {
        Traffic {
            heads: vec![1; arguments.conversations],
            payload: Payload::from(vec![0x5a; arguments.payload]),
            ordered: arguments.ordered,
            random: 1,
            sent: 0,
        }
    }

    fn fill(&mut self, batch: &mut Vec<Request>) {
        batch.clear();
        for _ in 0..BATCH {
            // Knuth's MMIX generator; its upper bits are good enough here.
            self.random =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (self.random >> 33) as usize % self.heads.len();
            let (from, to) = if self.sent.is_multiple_of(2) { (0, 1) } else { (1, 0) };
            let before = self.heads[at];
            self.heads[at] += 1;
            self.sent += 1;
            batch.push(Request::Append {
                conversation: conversation(at),
                from: device(at, from),
                client_id: self.client_id(),
                ts: self.ts(),
                payload: self.payload.clone(),
                mark: Vec::new(),
            });
            batch.push(Request::Acknowledge {
                conversation: conversation(at),
                device: device(at, to),
                seq: Seq(before),
            });
        }
    }

    /// Sixty messages a millisecond.
    fn ts(&self) -> Wall {
        Wall(1_700_000_000_000 + self.sent / 60)
    }

    fn client_id(&self) -> ClientId {
        let mut id = scatter(self.sent, 0xe);
        if self.ordered {
            id[..6].copy_from_slice(&self.ts().0.to_be_bytes()[2..]);
        }
        ClientId(id)
    }
}

fn fill(store: &mut SqliteStore, conversations: usize) -> Result<(), Box<dyn Error>> {
    let ts = Wall(1_700_000_000_000);
    let all: Vec<usize> = (0..conversations).collect();
    for some in all.chunks(BATCH) {
        let mut batch = Vec::new();
        for at in some {
            let sides = [0, 1].map(|side| device(*at, side));
            batch.extend(sides.map(|device| Request::RegisterDevice { device, ts }));
            batch.push(Request::CreateConversation {
                conversation: conversation(*at),
                kind: ConversationKind::Direct,
                by: sides[0].user,
                members: sides.map(|device| device.user).into(),
                ts,
            });
        }
        store.commit(&batch, &mut Vec::new())?;
    }
    Ok(())
}

/// Ids that look random, as real ones do.
fn scatter(number: u64, tag: u64) -> [u8; 16] {
    let mix = |number: u64| {
        let mixed = (number ^ tag << 56).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&mix(number).to_be_bytes());
    id[8..].copy_from_slice(&mix(!number).to_be_bytes());
    id
}

fn conversation(at: usize) -> ConversationId {
    ConversationId(scatter(at as u64, 0xc))
}

fn device(at: usize, side: u64) -> DeviceKey {
    DeviceKey { user: UserId(scatter(2 * at as u64 + side, 0xd)), device: DeviceId(1) }
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
