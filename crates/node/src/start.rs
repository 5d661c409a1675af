//! Starting and stopping a node.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fabric::{Outbox, Port};
use model::limits::TURN_BYTES_PER_CONNECTION;
use model::{Mono, ShardId, Span};
use reactor::{BindError, ListenOptions, Options, Reactor, Waker};
use shard::{Settings, Shard, owner_of};
use store::{Engine, Fatal};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::gauges::{ShardGauges, StoreGauges};
use crate::handle::{Handle, Inner};
use crate::import::{StoreDoor, store_door};
use crate::inbox::{Command, Inbox, inbox};
use crate::parcel::Parcel;
use crate::store_thread::StoreThread;
use crate::turn::{ITEMS_PER_BLOCK, Turn};

/// Blocks that wait in one ring before its sender takes no new work.
const BLOCKS_PER_RING: usize = 64;

/// How a node is started.
pub struct Config {
    /// Where to listen; every shard has a listener of its own there.
    pub listen: SocketAddr,
    /// For every shard; its `shards` says how many there are.
    pub settings: Settings,
    /// Client ids are remembered for this long.
    pub idempotency: Span,
    /// Requests in one transaction.
    pub batch_max: usize,
    /// Takes connections that are not WebSockets.
    pub http: OwnedFd,
}

/// Why a node did not start.
#[derive(Debug)]
pub enum StartError {
    /// The address cannot be listened on.
    Bind(BindError),
    /// A system resource could not be had; says which.
    System(&'static str, std::io::Error),
    /// The store could not be read.
    Store(Fatal),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Bind(error) => error.fmt(f),
            StartError::System(what, _) => write!(f, "cannot make {what}"),
            StartError::Store(_) => f.write_str("the store cannot be read"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Bind(error) => error.source(),
            StartError::System(_, error) => Some(error),
            StartError::Store(fatal) => std::error::Error::source(fatal),
        }
    }
}

/// What a started node is like.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Devices known.
    pub devices: u64,
    /// Shards with a descriptor table of their own; the others share one.
    pub own_tables: u16,
}

/// A running node.
pub struct Node {
    handle: Handle,
    summary: Summary,
    shards: Vec<JoinHandle<()>>,
    store: JoinHandle<()>,
    store_stop: Arc<AtomicBool>,
}

impl Node {
    /// Reads which devices there are, then starts the store thread and the shards.
    ///
    /// The runtime from which [`Handle`] is used must exist before: shards wake it, through a descriptor that has to be in their
    /// tables when these part.
    pub fn start(config: Config, mut engine: Box<dyn Engine>) -> Result<Node, StartError> {
        let listen = reactor::free_address(config.listen).map_err(StartError::Bind)?;
        let clock = Clock::start();
        let count = config.settings.shards;
        let mut shards: Vec<Shard> =
            (0..count).map(|id| Shard::new(ShardId(id), config.settings.clone(), clock.now())).collect();
        let devices = know_devices(&mut *engine, &mut shards, &config.settings).map_err(StartError::Store)?;

        // Wakers are made before the descriptor tables part, so that every shard holds every other's.
        let wakers: Vec<Waker> = (0..count)
            .map(|_| Waker::new())
            .collect::<Result<_, _>>()
            .map_err(|error| StartError::System("a wake-up descriptor for every shard", error))?;
        let store_thread: Arc<std::sync::OnceLock<std::thread::Thread>> = Arc::default();
        let mut ports = fabric::connect(fabric_wakers(&wakers, &store_thread), BLOCKS_PER_RING);
        let fabric = ports.iter().map(Port::gauges).collect();
        let store_port = ports.pop().expect("there is a port for the store");

        let (store, store_stop, store_gauges, store_door) = start_store(&config, engine, store_port, clock)?;
        let _ = store_thread.set(store.thread().clone());

        let http = Arc::new(config.http);
        let (ready, readiness) = sync_channel(usize::from(count));
        let mut inboxes = Vec::new();
        let mut gauges = Vec::new();
        let mut threads = Vec::new();
        for ((shard, port), waker) in shards.into_iter().zip(ports).zip(wakers) {
            let (sender, receiver) = inbox(waker.clone());
            let published = Arc::new(ShardGauges::default());
            inboxes.push(sender);
            gauges.push(Arc::clone(&published));
            let seed = Seed {
                shard,
                port,
                waker,
                inbox: receiver,
                http: Arc::clone(&http),
                clock,
                gauges: published,
                listen,
            };
            threads.push(spawn_shard(threads.len(), seed, ready.clone())?);
        }
        drop(ready);
        let own_tables = await_ready(&readiness, count)?;
        let inner = Inner {
            inboxes,
            shards: gauges,
            fabric,
            store: store_gauges,
            store_door,
            hash_key: config.settings.hash_key,
            tickets: AtomicU64::new(1),
        };
        let summary = Summary { listen, devices, own_tables };
        Ok(Node { handle: Handle { inner: Arc::new(inner) }, summary, shards: threads, store, store_stop })
    }

    /// What it is like.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// How the rest of the process reaches it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops accepting, tells every client to come back, closes them spread over `within`, writes everything, and ends all threads.
    /// Returns whether every connection was gone in time.
    pub async fn drain(self, within: Span) -> bool {
        let mut done = Vec::new();
        for inbox in &self.handle.inner.inboxes {
            let (sender, receiver) = oneshot::channel();
            if send_surely(inbox, Command::Drain { within, done: sender }).await {
                done.push(receiver);
            }
        }
        let all = async {
            for receiver in done {
                let _ = receiver.await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_millis(within.0 + 3_000), all).await.is_ok();
        for inbox in &self.handle.inner.inboxes {
            send_surely(inbox, Command::Stop).await;
        }
        let join = move || {
            for thread in self.shards {
                let _ = thread.join();
            }
            self.store_stop.store(true, Ordering::Release);
            self.store.thread().unpark();
            let _ = self.store.join();
        };
        tokio::task::spawn_blocking(join).await.is_ok() && in_time
    }
}

/// An inbox that is full is tried again for a second; false when the shard has ended.
pub(crate) async fn send_surely(inbox: &Inbox, command: Command) -> bool {
    let mut command = command;
    for _ in 0..100 {
        match inbox.send(command) {
            Ok(()) => return true,
            Err(back) => command = back,
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

fn know_devices(engine: &mut dyn Engine, shards: &mut [Shard], settings: &Settings) -> Result<u64, Fatal> {
    let mut devices = 0;
    engine.devices(&mut |device, pending| {
        let partition = model::partition_of_user(&settings.hash_key, device.user);
        shards[usize::from(owner_of(partition, settings.shards).0)].know(device, pending);
        devices += 1;
    })?;
    Ok(devices)
}

fn fabric_wakers(
    wakers: &[Waker],
    store: &Arc<std::sync::OnceLock<std::thread::Thread>>,
) -> Vec<fabric::Waker> {
    let mut all: Vec<fabric::Waker> = Vec::new();
    for waker in wakers {
        let waker = waker.clone();
        all.push(Box::new(move || waker.wake()));
    }
    let store = Arc::clone(store);
    all.push(Box::new(move || {
        if let Some(thread) = store.get() {
            thread.unpark();
        }
    }));
    all
}

type Started = (JoinHandle<()>, Arc<AtomicBool>, Arc<StoreGauges>, StoreDoor);

fn start_store(
    config: &Config,
    engine: Box<dyn Engine>,
    port: Port<Parcel>,
    clock: Clock,
) -> Result<Started, StartError> {
    let (stop, gauges) = (Arc::new(AtomicBool::new(false)), Arc::new(StoreGauges::default()));
    let (knock, outside) = store_door();
    let thread = StoreThread {
        engine,
        port,
        outside,
        gauges: Arc::clone(&gauges),
        stop: Arc::clone(&stop),
        clock,
        idempotency: config.idempotency,
        batch_max: config.batch_max,
    };
    let spawned =
        std::thread::Builder::new().name("store".into()).spawn(move || or_exit("store", || thread.run()));
    let spawned = spawned.map_err(|error| StartError::System("the store thread", error))?;
    let door = StoreDoor::new(knock, spawned.thread().clone());
    Ok((spawned, stop, gauges, door))
}

/// What a shard thread is made of.
struct Seed {
    shard: Shard,
    port: Port<Parcel>,
    waker: Waker,
    inbox: Receiver<Command>,
    http: Arc<OwnedFd>,
    clock: Clock,
    gauges: Arc<ShardGauges>,
    listen: SocketAddr,
}

type Readiness = Result<bool, StartError>;

fn spawn_shard(
    number: usize,
    seed: Seed,
    ready: SyncSender<Readiness>,
) -> Result<JoinHandle<()>, StartError> {
    let body = move || {
        or_exit("shard", || match seed.grow() {
            Ok((turn, own_table)) => {
                let _ = ready.send(Ok(own_table));
                drop(ready);
                if let Err(error) = turn.run() {
                    tracing::error!(%error, "a shard cannot wait for its sockets any more");
                    std::process::exit(1);
                }
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        });
    };
    let spawned = std::thread::Builder::new().name(format!("shard-{number}")).spawn(body);
    spawned.map_err(|error| StartError::System("a thread for every shard", error))
}

impl Seed {
    /// In the shard's own thread: parts the descriptor table, then opens what belongs to it.
    fn grow(self) -> Result<(Turn, bool), StartError> {
        // SAFETY: the reactor with its listener and sockets is made below and stays in this thread. What came from outside (wakers,
        // the socket to the HTTP side) was opened before and is only used by number, which is the same in both tables.
        let own_table = unsafe { reactor::unshare_files() }.is_ok();
        let system = |what| move |error| StartError::System(what, error);
        let mut reactor = Reactor::new(self.waker, Options::default()).map_err(system("an epoll set"))?;
        reactor.listen(self.listen, &ListenOptions::default()).map_err(StartError::Bind)?;
        let ports = self.port.ports();
        let turn = Turn {
            shard: self.shard,
            reactor,
            store: ports - 1,
            outbox: Outbox::new(ports, ITEMS_PER_BLOCK),
            port: self.port,
            inbox: self.inbox,
            http: self.http,
            clock: self.clock,
            gauges: self.gauges,
            waiting: HashMap::new(),
            draining: None,
            buffer: vec![0; TURN_BYTES_PER_CONNECTION].into_boxed_slice(),
            accepted: Vec::new(),
            actions: shard::Actions::default(),
            complained: None,
            turns: 0,
            busy: Mono(0),
            rested: false,
        };
        Ok((turn, own_table))
    }
}

fn await_ready(readiness: &Receiver<Readiness>, count: u16) -> Result<u16, StartError> {
    let mut own_tables = 0;
    for _ in 0..count {
        own_tables += u16::from(readiness.recv().expect("every shard says whether it is ready")?);
    }
    Ok(own_tables)
}

/// A thread that panicked took part of the state with it. The process ends loudly and recovers from the disk.
fn or_exit(what: &str, body: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err() {
        tracing::error!("a {what} thread panicked; stopping. Everything acknowledged is on disk");
        std::process::exit(101);
    }
}
