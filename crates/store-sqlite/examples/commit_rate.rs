//! How many messages a second one core commits: batches of 1,000 appends, each with the acknowledgement of the message before it in its
//! conversation, over direct conversations with one device on each side.
//!
//! `cargo run --release -p store-sqlite --example commit_rate -- [conversations] [batches] [payload bytes] [directory]`

use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::{ClientId, ConversationId, ConversationKind, DeviceId, DeviceKey, Payload, Seq, UserId, Wall};
use store::{Engine, Reply, Request};
use store_sqlite::{Options, SqliteStore};

const BATCH: usize = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: usize| arguments.next().map_or(Ok(otherwise), |text| text.parse::<usize>());
    let (conversations, batches, payload_bytes) = (number(1_000)?, number(300)?, number(200)?);
    let directory = arguments.next().map_or_else(|| PathBuf::from("commit-rate-data"), PathBuf::from);
    std::fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut store = SqliteStore::open(
        &directory,
        &Options {
            checkpoint_bytes: std::env::var("CKPT").map_or(64, |x| x.parse().unwrap()) << 20,
            ..Options::default()
        },
    )?;
    let result = measure(&mut store, conversations, batches, payload_bytes);
    drop(store);
    std::fs::remove_dir_all(&directory)?;
    result
}

fn measure(
    store: &mut SqliteStore,
    conversations: usize,
    batches: usize,
    payload_bytes: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    fill(store, conversations)?;
    let gauges = store.gauges();
    let payload = Payload::from(vec![0x5a; payload_bytes]);
    let mut random = 1_u64;
    let mut heads = vec![1_u64; conversations];
    let (mut sent, mut replies) = (0_u64, Vec::new());
    let (mut within, mut checkpoints) = (Vec::with_capacity(batches), Duration::ZERO);
    let (mut longest, mut held_up) = (Duration::ZERO, 0);
    let cpu = cpu_time();
    for _ in 0..batches {
        let mut batch = Vec::with_capacity(2 * BATCH);
        for _ in 0..BATCH {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 33) as usize % conversations;
            let (from, to) = if sent.is_multiple_of(2) { (0, 1) } else { (1, 0) };
            heads[at] += 1;
            sent += 1;
            let mut client_id = [0; 16];
            let start = if std::env::var("V4").is_ok() {
                random
            } else {
                (1_700_000_000_000 + sent / 60) << 16 | random >> 48
            };
            client_id[..8].copy_from_slice(&start.to_be_bytes());
            client_id[8..].copy_from_slice(&scatter(sent, 0xe)[..8]);
            batch.push(Request::Append {
                conversation: conversation(at),
                from: device(at, from),
                client_id: ClientId(client_id),
                ts: Wall(1_700_000_000_000 + sent / 60),
                payload: payload.clone(),
                mark: Vec::new(),
            });
            batch.push(Request::Acknowledge {
                conversation: conversation(at),
                device: device(at, to),
                seq: Seq(heads[at] - 1),
            });
        }
        let began = Instant::now();
        replies.clear();
        store.commit(&batch, &mut replies)?;
        within.push(began.elapsed());
        let numbers = gauges.read();
        if numbers.checkpoints > held_up {
            held_up = numbers.checkpoints;
            checkpoints += numbers.checkpoint;
            longest = longest.max(numbers.checkpoint);
        }
        assert!(replies.iter().all(|reply| matches!(reply, Reply::Appended { .. } | Reply::Done)));
    }
    let took: Duration = within.iter().sum();
    within.sort_unstable();
    let requests = 2 * BATCH * batches;
    let per_second = requests as f64 / took.as_secs_f64();
    println!(
        "{conversations} conversations, payloads of {payload_bytes} bytes, {batches} batches of {BATCH} appends and as many acknowledgements"
    );
    println!(
        "{per_second:.0} requests/s ({:.0} messages/s), {:.2} µs a request, {:.2} µs of CPU a request",
        per_second / 2.0,
        took.as_secs_f64() * 1e6 / requests as f64,
        (cpu_time() - cpu).as_secs_f64() * 1e6 / requests as f64
    );
    let at = |part: usize| within[(within.len() - 1) * part / 100];
    println!("a batch: p50 {:?}, p95 {:?}, p99 {:?}, longest {:?}", at(50), at(95), at(99), at(100));
    let numbers = gauges.read();
    println!(
        "{held_up} checkpoints took {checkpoints:?}, the longest {longest:?}; log {} pages, database {} MiB",
        numbers.log_pages,
        numbers.database_bytes >> 20
    );
    Ok(())
}

fn fill(store: &mut SqliteStore, conversations: usize) -> Result<(), Box<dyn std::error::Error>> {
    let ts = Wall(1_700_000_000_000);
    let all: Vec<usize> = (0..conversations).collect();
    for some in all.chunks(BATCH) {
        let mut batch = Vec::new();
        for at in some {
            batch.extend([0, 1].map(|side| Request::RegisterDevice { device: device(*at, side), ts }));
            batch.push(Request::CreateConversation {
                conversation: conversation(*at),
                kind: ConversationKind::Direct,
                by: device(*at, 0).user,
                members: vec![device(*at, 0).user, device(*at, 1).user],
                ts,
            });
        }
        store.commit(&batch, &mut Vec::new())?;
    }
    Ok(())
}

/// Ids look random, as real ones do.
fn scatter(number: u64, tag: u64) -> [u8; 16] {
    let mut id = [0; 16];
    let mixed = (number ^ tag << 56).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    id[..8].copy_from_slice(&(mixed ^ mixed >> 29).to_be_bytes());
    id[8..].copy_from_slice(&number.to_be_bytes());
    id
}

fn conversation(at: usize) -> ConversationId {
    ConversationId(scatter(at as u64, 0xc))
}

fn device(at: usize, side: u64) -> DeviceKey {
    DeviceKey { user: UserId(scatter(2 * at as u64 + side, 0xd)), device: DeviceId(1) }
}

fn cpu_time() -> Duration {
    let usage = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(usage.tv_sec as u64, usage.tv_nsec as u32)
}
