//! The work, the same for both sides: keys, the hash, the partitions' state, replies and their checks.

use std::hash::Hasher;
use std::hint::black_box;

use siphasher::sip::SipHasher13;

/// How many connections there are.
pub const CONNECTIONS: usize = 200_000;
/// How many single-writer partitions take their jobs.
pub const PARTITIONS: usize = 32;
/// How many logs a partition keeps.
const LOGS: usize = 256;

/// What a connection is known by.
pub type Key = [u64; 2];

/// The key of connection `index`: the finalizer of SplitMix64, which is one-to-one, so all keys differ.
pub fn key_of(index: usize) -> Key {
    let first = mix(index as u64);
    [first, mix(!first)]
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The partition of a key, by SipHash-1-3 under a secret.
pub fn partition_of(salt: u64, key: Key) -> usize {
    let mut hasher = SipHasher13::new_with_keys(salt, 0x7468_726F_6E67);
    hasher.write_u64(key[0]);
    hasher.write_u64(key[1]);
    hasher.finish() as usize % PARTITIONS
}

/// What a partition answers.
#[derive(Clone, Copy)]
pub struct Reply {
    /// The job's place in its log.
    pub seq: u32,
    /// What the log said before.
    digest: u64,
    /// Shows that this reply was made for this key in this state.
    proof: u64,
}

impl Reply {
    /// Whether it was made for `key`.
    pub fn is_for(&self, key: Key) -> bool {
        self.proof == proof(key, self.seq, self.digest)
    }
}

fn proof(key: Key, seq: u32, digest: u64) -> u64 {
    mix(key[0] ^ key[1].rotate_left(17) ^ digest ^ u64::from(seq) << 32)
}

/// Which log of its partition a key belongs to.
pub fn log_of(key: Key) -> usize {
    key[1] as usize % LOGS
}

/// State with one writer: logs that each know their length and a digest of all that was written.
pub struct Partition {
    logs: Box<[(u32, u64); LOGS]>,
    /// How long the work of a job is, in steps of [`spin`].
    steps: u64,
}

impl Partition {
    /// An empty one.
    pub fn new(steps: u64) -> Self {
        Self { logs: Box::new([(0, 0); LOGS]), steps }
    }

    /// Appends a job and answers it.
    pub fn handle(&mut self, key: Key) -> Reply {
        spin(self.steps);
        let (seq, digest) = &mut self.logs[log_of(key)];
        *seq += 1;
        let reply = Reply { seq: *seq, digest: *digest, proof: proof(key, *seq, *digest) };
        *digest = mix(*digest ^ reply.proof);
        reply
    }
}

/// Work that nothing can shorten: steps that each need the one before.
pub fn spin(steps: u64) {
    let mut value = steps;
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}

/// After the clock: every log of every partition has numbered its jobs from 1 with no gap and no double.
pub fn check_logs(salt: u64, seqs: impl Iterator<Item = u32>) {
    let mut logs = vec![Vec::new(); PARTITIONS * LOGS];
    let mut count = 0;
    for (index, seq) in seqs.enumerate() {
        let key = key_of(index);
        logs[partition_of(salt, key) * LOGS + log_of(key)].push(seq);
        count += 1;
    }
    assert_eq!(count, CONNECTIONS);
    for log in &mut logs {
        log.sort_unstable();
        assert!(log.iter().copied().eq(1..=log.len() as u32), "a log skipped or doubled a job");
    }
}
