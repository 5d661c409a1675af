//! The fan-in as it is usually written: a task for each connection, a task and a channel for each partition, a
//! one-shot channel for each reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::measure::Stretch;
use crate::report::Sample;
use crate::work::{CONNECTIONS, Key, PARTITIONS, Partition, Reply, check_logs, key_of, partition_of};

/// How many jobs wait for a partition.
const CHANNEL: usize = 64;

pub struct Job {
    pub key: Key,
    pub reply_to: oneshot::Sender<Reply>,
}

/// The partitions' tasks, and the ways to them.
pub fn partitions(steps: u64) -> Arc<[mpsc::Sender<Job>]> {
    let partition = |_| {
        let (sender, mut jobs) = mpsc::channel::<Job>(CHANNEL);
        let mut partition = Partition::new(steps);
        tokio::spawn(async move {
            while let Some(Job { key, reply_to }) = jobs.recv().await {
                let _ = reply_to.send(partition.handle(key));
            }
        });
        sender
    };
    (0..PARTITIONS).map(partition).collect()
}

/// What a connection does with its one job.
pub async fn ask(partitions: &[mpsc::Sender<Job>], salt: u64, key: Key) -> Reply {
    let (reply_to, reply) = oneshot::channel();
    let job = Job { key, reply_to };
    assert!(partitions[partition_of(salt, key)].send(job).await.is_ok(), "the partition is there");
    let reply = reply.await.expect("a reply");
    assert!(reply.is_for(key), "somebody else's reply");
    reply
}

struct Crowd {
    partitions: Arc<[mpsc::Sender<Job>]>,
    salt: u64,
    seqs: Box<[AtomicU32]>,
    /// Connections that are not there yet, then connections without a reply.
    absent: AtomicUsize,
    unanswered: AtomicUsize,
    all_there: Notify,
    gate: Option<Notify>,
    all_answered: Notify,
}

/// One run from nothing. With a gate, all connections exist before the first one sends, as they do on the other side,
/// and the steady time counts from there. Without, each sends as soon as it exists and may be gone before the next
/// one comes, which is less than was asked but quicker: the ratio that counts is the one to this.
pub fn run(steps: u64, salt: u64, threads: usize, gated: bool) -> Sample {
    let stretch = Stretch::begin();
    let runtime = Builder::new_multi_thread().worker_threads(threads).build().expect("a runtime");
    let begin = Instant::now();
    let driver = async move {
        let crowd = Arc::new(Crowd {
            partitions: partitions(steps),
            salt,
            seqs: (0..CONNECTIONS).map(|_| AtomicU32::new(0)).collect(),
            absent: AtomicUsize::new(CONNECTIONS),
            unanswered: AtomicUsize::new(CONNECTIONS),
            all_there: Notify::new(),
            gate: gated.then(Notify::new),
            all_answered: Notify::new(),
        });
        for index in 0..CONNECTIONS {
            tokio::spawn(connection(crowd.clone(), index));
        }
        if let Some(gate) = &crowd.gate {
            crowd.all_there.notified().await;
            let start = Instant::now();
            gate.notify_waiters();
            crowd.all_answered.notified().await;
            return (crowd, start);
        }
        crowd.all_answered.notified().await;
        (crowd, begin)
    };
    // Not as a task of the runtime: spawning from one of its own threads was measured to take half as long again.
    let (crowd, start) = runtime.block_on(driver);
    let steady = start.elapsed();
    let (total, cpu, memory) = stretch.end();
    check_logs(salt, crowd.seqs.iter().map(|seq| seq.load(Ordering::Relaxed)));
    Sample { total, steady, cpu, memory, crossed: 0 }
}

async fn connection(crowd: Arc<Crowd>, index: usize) {
    let key = key_of(index);
    if let Some(gate) = &crowd.gate {
        let opened = gate.notified();
        let mut opened = std::pin::pin!(opened);
        opened.as_mut().enable();
        if crowd.absent.fetch_sub(1, Ordering::Relaxed) == 1 {
            crowd.all_there.notify_one();
        }
        opened.await;
    }
    let reply = ask(&crowd.partitions, crowd.salt, key).await;
    crowd.seqs[index].store(reply.seq, Ordering::Relaxed);
    if crowd.unanswered.fetch_sub(1, Ordering::AcqRel) == 1 {
        crowd.all_answered.notify_one();
    }
}
