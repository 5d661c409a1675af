//! A crowd that is held: users 0 … of a server, connected from as many threads as their descriptors need.
//!
//! Owns the threads, and how many of their clients are in. A client does nothing but answer pings; if it is told to, it comes back when
//! its connection is over, as the server told it to.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use load::run::Chance;
use load::{Context, Fleet, FleetOptions, Minter, PER_SOURCE, Said, Scenario, Server};
use protocol::{Connected, Window};

/// Connections of one thread: its descriptor table has room for these and a few more.
pub const PER_THREAD: usize = 19_000;
/// Connections being made at the same time, by all threads.
const CONNECTING_MAX: usize = 2_048;
/// How often a thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);

/// Connections held by threads.
pub struct Held {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Result<(), String>>>,
    /// Of each thread, how many of its clients are in.
    open: Vec<Arc<AtomicUsize>>,
    wanted: usize,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Whether those who lose their connection come back.
    returning: AtomicBool,
    /// Connections that were over or did not come about, while they come back.
    losses: AtomicUsize,
    /// The first thing that went wrong.
    trouble: Mutex<Option<String>>,
}

/// Holds still, or comes back.
struct Hold {
    shared: Arc<Shared>,
    window: Window,
    /// The same in every run.
    chance: Chance,
}

impl Scenario for Hold {
    fn connected(&mut self, _: &mut Context<'_>, _: usize, connected: &Connected) {
        self.window = connected.reconnect;
    }

    fn said(&mut self, context: &mut Context<'_>, client: usize, said: Said<'_>) {
        let Said::Over(_) = said else { return };
        if !self.shared.returning.load(Ordering::Relaxed) {
            return;
        }
        self.shared.losses.fetch_add(1, Ordering::Relaxed);
        let wait = self.window.min.0 + self.chance.below(self.window.max.0 - self.window.min.0 + 1);
        context.come_back(client, context.now + Duration::from_millis(wait));
    }
}

impl Held {
    /// Nobody yet.
    pub fn nobody() -> Held {
        Held { shared: Arc::default(), threads: Vec::new(), open: Vec::new(), wanted: 0 }
    }

    /// Connects users 0 ..`count` and waits until all are in.
    pub fn connect(server: &Server, count: usize) -> Result<Held, String> {
        let mut held = Held::nobody();
        held.grow(server, count, Duration::from_secs(120))?;
        Ok(held)
    }

    /// Connects more, until users 0 ..`count` are in.
    pub fn grow(&mut self, server: &Server, count: usize, patience: Duration) -> Result<(), String> {
        let from = std::mem::replace(&mut self.wanted, count);
        let ranges: Vec<Range<usize>> =
            (from..count).step_by(PER_THREAD).map(|from| from..count.min(from + PER_THREAD)).collect();
        for range in &ranges {
            let (shared, open) = (Arc::clone(&self.shared), Arc::new(AtomicUsize::new(0)));
            self.open.push(Arc::clone(&open));
            let options = FleetOptions {
                connecting_max: (CONNECTING_MAX / ranges.len()).max(8),
                first_source: (self.threads.len() * PER_THREAD.div_ceil(PER_SOURCE)) as u16,
                wait_max: LOOK,
                ..FleetOptions::new(server.address)
            };
            let (minter, range) = (server.minter(), range.clone());
            self.threads.push(std::thread::spawn(move || {
                let done = hold(&shared, &open, options, minter, range);
                if let Err(why) = &done {
                    let mut trouble = shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
                    trouble.get_or_insert_with(|| why.clone());
                }
                done
            }));
        }
        let end = Instant::now() + patience;
        while self.open() < count {
            if let Some(why) = self.trouble() {
                return Err(format!("{} of {count} are in; {why}", self.open()));
            }
            if Instant::now() > end {
                return Err(format!("{} of {count} were in after {patience:?}", self.open()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// How many are in.
    pub fn open(&self) -> usize {
        self.open.iter().map(|open| open.load(Ordering::Relaxed)).sum()
    }

    /// The first thing that went wrong.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on whoever loses the connection comes back.
    pub fn let_return(&self) {
        self.shared.returning.store(true, Ordering::Relaxed);
    }

    /// Connections that were lost or did not come about since they come back.
    pub fn losses(&self) -> usize {
        self.shared.losses.load(Ordering::Relaxed)
    }

    /// Ends them, and says how many were in to the last.
    pub fn release(mut self) -> Result<usize, String> {
        let open = self.open();
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| "a client thread panicked".to_owned())??;
        }
        Ok(open)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What one thread does.
fn hold(
    shared: &Arc<Shared>,
    open: &AtomicUsize,
    options: FleetOptions,
    minter: Minter,
    users: Range<usize>,
) -> Result<(), String> {
    // SAFETY: the fleet's descriptors are made and used in this thread only.
    let _ = unsafe { reactor::unshare_files() };
    let (first, count) = (users.start, users.len());
    let tokens = Box::new(move |client| Ok(minter.token(first + client)));
    let mut fleet = Fleet::new(options, count, tokens).map_err(|error| error.to_string())?;
    fleet.prompt(|context| (0..count).for_each(|client| context.connect(client)));
    let mut hold =
        Hold { shared: Arc::clone(shared), window: Window::default(), chance: Chance::new(first as u64) };
    let stopped = |fleet: &mut Fleet, hold: &mut Hold| {
        open.store(fleet.open(), Ordering::Relaxed);
        let lost = fleet.failures() > 0 && !hold.shared.returning.load(Ordering::Relaxed);
        lost || hold.shared.stop.load(Ordering::Relaxed)
    };
    fleet.run(&mut hold, Duration::from_secs(7_200), stopped).map_err(|error| error.to_string())?;
    match (shared.stop.load(Ordering::Relaxed), fleet.failure()) {
        (false, Some(why)) => Err(format!("{} connections were lost: {why}", fleet.failures())),
        _ => Ok(()),
    }
}
