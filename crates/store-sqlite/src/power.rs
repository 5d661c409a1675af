//! Power cuts, for the tests of this crate: what would be left on the disk if the power failed now.
//!
//! While it records, every write, cut and sync of the database file, its log and its mark is noted on the way to the system. At random
//! moments the files are set aside as a power cut may leave them: what was synced is there; of what was written since, any sectors are.
//! Then a store is opened on what is left. Deliberately knows nothing of what is in the files.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::{directory, mark};

/// Which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Database,
    Log,
    Mark,
}

/// What a power cut leaves whole or not at all, in bytes.
const SECTOR: usize = 512;

/// Something that was done to a file since its last sync.
#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Cut { len: usize },
}

/// One file: what is durable, and what may be.
#[derive(Debug, Clone, Default)]
struct Image {
    durable: Vec<u8>,
    since: Vec<Change>,
    /// Changes that are durable already.
    before: usize,
}

/// All files at one moment, and how many batches had been answered by then.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    files: [Image; 3],
    pub answered: usize,
}

/// What is being recorded.
struct Recorder {
    now: Moment,
    moments: Vec<Moment>,
    moments_max: usize,
    /// One change in so many is followed by a power cut.
    odds: usize,
    random: Random,
}

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

fn with(act: impl FnOnce(&mut Recorder)) {
    if let Some(recorder) = RECORDER.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        act(recorder);
    }
}

/// Begins to record what is done to the files of a directory, in which nothing is unsynced.
pub(crate) fn record(of: &Path, seed: u64, odds: usize, moments_max: usize) {
    let database = directory::database(of);
    let files = [database.clone(), directory::beside(&database, "-wal"), mark::path(&database)];
    let image = |file| Image { durable: fs::read(file).unwrap_or_default(), ..Image::default() };
    let now = Moment { files: files.map(image), answered: 0 };
    let recorder = Recorder { now, moments: Vec::new(), moments_max, odds, random: Random(seed) };
    *RECORDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorder);
}

/// One more batch is answered.
pub(crate) fn answered() {
    with(|recorder| recorder.now.answered += 1);
}

/// From now on so many moments more are set aside, one in so many changes.
pub(crate) fn go_on(odds: usize, moments: usize) {
    with(|recorder| (recorder.odds, recorder.moments_max) = (odds, recorder.moments.len() + moments));
}

/// Ends recording; what was set aside.
pub(crate) fn moments() -> Vec<Moment> {
    let recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner).take();
    recorder.map_or(Vec::new(), |recorder| recorder.moments)
}

/// Bytes were written.
pub(crate) fn wrote(kind: Kind, bytes: &[u8], at: u64) {
    changed(kind, Change::Write { at: at as usize, bytes: bytes.to_vec() });
}

/// A file was cut off.
pub(crate) fn cut(kind: Kind, len: u64) {
    changed(kind, Change::Cut { len: len as usize });
}

fn changed(kind: Kind, change: Change) {
    with(|recorder| {
        recorder.now.files[kind as usize].since.push(change);
        if recorder.moments.len() < recorder.moments_max && recorder.random.below(recorder.odds) == 0 {
            recorder.moments.push(recorder.now.clone());
        }
    });
}

/// A sync begins: so many changes of the file, counted from the beginning, will be durable after it.
pub(crate) fn syncing(kind: Kind) -> usize {
    let mut count = 0;
    with(|recorder| {
        let Image { since, before, .. } = &recorder.now.files[kind as usize];
        count = before + since.len();
    });
    count
}

/// That sync went well.
pub(crate) fn synced(kind: Kind, count: usize) {
    with(|recorder| {
        let Image { durable, since, before } = &mut recorder.now.files[kind as usize];
        // Another thread's sync may have been faster.
        let new = count.saturating_sub(*before);
        *before += new;
        for change in since.drain(..new) {
            change.apply(durable, &mut |_| true);
        }
    });
}

impl Change {
    /// Does it to the bytes of a file, as far as its sectors survive.
    fn apply(&self, file: &mut Vec<u8>, survives: &mut dyn FnMut(usize) -> bool) {
        match self {
            Change::Write { at, bytes } => {
                let mut from = 0;
                while from < bytes.len() {
                    let sector = (at + from) / SECTOR;
                    let to = bytes.len().min((sector + 1) * SECTOR - at);
                    if survives(sector) {
                        file.resize(file.len().max(at + to), 0);
                        file[at + from..at + to].copy_from_slice(&bytes[from..to]);
                    }
                    from = to;
                }
            }
            Change::Cut { len } if survives(0) => file.truncate(*len),
            Change::Cut { .. } => {}
        }
    }
}

impl Moment {
    /// Puts into a directory what the power cut has left.
    pub(crate) fn leave(&self, to: &Path, random: &mut Random) {
        fs::create_dir_all(to).expect("a directory");
        let database = directory::database(to);
        let names = [database.clone(), directory::beside(&database, "-wal"), mark::path(&database)];
        for (Image { durable, since, .. }, name) in self.files.iter().zip(names) {
            let mut file = durable.clone();
            // Of each file nearly all, nearly nothing, or any part has reached the disk.
            let (survivors, of) = [(0, 1), (1, 1), (1, 2), (9, 10), (1, 10)][random.below(5)];
            for change in since {
                change.apply(&mut file, &mut |_| random.below(of) < survivors);
            }
            // A name without content is there as well.
            fs::write(name, file).expect("a file");
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Less than `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

mod tests {
    use std::time::{Duration, Instant};

    use model::DeviceKey;
    use store::conformance::{Step, everything, traffic};
    use store::{Engine, MemoryStore, Reply};

    use super::*;
    use crate::vfs::faults::Disk;
    use crate::{Options, SqliteStore};

    /// Runs, batches in each, and power cuts in each, before the log is copied and cut off at the end.
    const RUNS: u64 = 20;
    const BATCHES: u32 = 60;
    const CUTS: usize = 12;

    /// On a disk as slow as that, fewer runs have to do.
    const ENOUGH: Duration = Duration::from_secs(60);

    /// The devices with their marks, and the answer to every question there is.
    type State = (Vec<(DeviceKey, u32)>, Vec<Reply>);

    fn state(engine: &mut dyn Engine) -> State {
        let (mut devices, mut replies) = (Vec::new(), Vec::new());
        engine.devices(&mut |device, marks| devices.push((device, marks))).expect("the disk works");
        devices.sort_unstable();
        engine.commit(&everything(), &mut replies).expect("the disk works");
        (devices, replies)
    }

    fn open(directory: &Path) -> SqliteStore {
        // The log is copied every few batches, so that cuts meet copies too.
        let options = Options { checkpoint_bytes: 60 << 10, cache_bytes: 64 << 10, ..Options::default() };
        SqliteStore::open(directory, &options).unwrap_or_else(|error| panic!("{error}: {error:?}"))
    }

    /// Carries batches out, with power cuts at random moments.
    fn cuts(directory: &Path, steps: &[Step], seed: u64) -> Vec<Moment> {
        drop(open(directory));
        record(directory, seed, 20, CUTS);
        let mut store = open(directory);
        for step in steps {
            let mut replies = Vec::new();
            store.commit(&step.batch, &mut replies).expect("the disk works");
            answered();
        }
        // Closing copies the log and cuts it off.
        go_on(3, CUTS / 3);
        drop(store);
        moments()
    }

    /// Which state a directory recovers to; as many batches as were answered, or the one more that was being written.
    fn recover(directory: &Path, expected: &[(usize, State)], again: Option<u64>) -> (usize, Vec<Moment>) {
        if let Some(seed) = again {
            record(directory, seed, 4, 1);
        }
        let mut store = open(directory);
        let found = state(&mut store);
        drop(store);
        let moments = moments();
        let which = expected.iter().find(|(_, state)| *state == found);
        (which.unwrap_or_else(|| panic!("what was found is none of {} states", expected.len())).0, moments)
    }

    #[test]
    fn after_any_power_cut_all_that_was_answered_is_there_and_recovery_finds_it_again() {
        let _disk = Disk::take();
        let seeds = match std::env::var("THRONG_SEED") {
            Ok(seed) => vec![seed.parse().expect("THRONG_SEED is a number")],
            Err(_) => (1..=RUNS).collect(),
        };
        let (mut all, mut one_more, mut interrupted) = (0, 0, 0);
        let (began, mut complete) = (Instant::now(), std::env::var("THRONG_SEED").is_err());
        for seed in seeds {
            if began.elapsed() > ENOUGH {
                complete = false;
                println!("after {ENOUGH:?} the rest is left out");
                break;
            }
            println!("THRONG_SEED={seed}");
            let mut random = Random(seed);
            let above = tempfile::tempdir().expect("a temporary directory");
            let steps = traffic(seed, BATCHES);
            for (number, moment) in cuts(&above.path().join("served"), &steps, seed).iter().enumerate() {
                println!("cut {number}, {} batches answered", moment.answered);
                let before = moment.answered.checked_sub(1).map(|last| steps[last].after.clone());
                let state_of = |mut store: MemoryStore| state(&mut store);
                let mut expected = vec![(0, state_of(before.unwrap_or_default()))];
                expected.extend(steps.get(moment.answered).map(|step| (1, state_of(step.after.clone()))));
                let left = above.path().join(number.to_string());
                moment.leave(&left, &mut random);
                let (found, cuts) = recover(&left, &expected, Some(random.next()));
                (all, one_more) = (all + 1, one_more + found);
                let expected = [expected.swap_remove(found)];
                recover(&left, &expected, None);
                // The power fails once more while the first cut is being recovered from.
                for moment in cuts {
                    let left = above.path().join(format!("{number}-again"));
                    moment.leave(&left, &mut random);
                    recover(&left, &expected, None);
                    interrupted += 1;
                }
            }
        }
        println!(
            "{all} power cuts, {one_more} left a batch of which nobody was told, {interrupted} came in a recovery"
        );
        if complete {
            assert!(all >= 200 && one_more >= 5 && interrupted >= 50, "{all}, {one_more}, {interrupted}");
        }
    }
}
