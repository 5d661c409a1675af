//! A server for one test: a node on a store in memory, and the HTTP side, each test its own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use api::{Dev, Limits, State};
use auth::{Grant, Keys, Rules, SigningKey, mint};
use model::{DeviceKey, HashKey, Span, UserId, Wall};
use store::{Engine, Fatal, MemoryStore, Reply, Request};
use tokio::sync::oneshot;

use crate::client::{Answer, Client};

/// What a test may want to be different.
#[derive(Default)]
pub struct Options {
    pub dev: bool,
    pub origins: &'static [&'static str],
    pub limits: Limits,
    pub shards: Option<u16>,
}

/// A store whose disk can be full, or slow.
struct Disk {
    store: MemoryStore,
    full: Arc<AtomicBool>,
    busy: Arc<Mutex<()>>,
}

impl Engine for Disk {
    fn commit(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), Fatal> {
        let _busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        self.store.set_full(self.full.load(Ordering::SeqCst));
        self.store.commit(batch, replies)
    }

    fn devices(&mut self, each: &mut dyn FnMut(DeviceKey, u32)) -> Result<(), Fatal> {
        self.store.devices(each)
    }
}

pub struct Server {
    pub address: SocketAddr,
    /// While set, the disk takes no more.
    pub full: Arc<AtomicBool>,
    /// While held, the store answers nothing.
    pub busy: Arc<Mutex<()>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

const SEED: [u8; 32] = [7; 32];

pub fn signing_key() -> SigningKey {
    SigningKey::ed25519_from_seed(&SEED).expect("any seed is a key")
}

pub fn now() -> Wall {
    Wall(SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970").as_millis() as u64)
}

pub fn grant(user: &str) -> Grant<'_> {
    Grant {
        user,
        device: 1,
        session: "test",
        audience: "throng",
        issuer: None,
        issued_at: now(),
        lifetime: Span::seconds(600),
    }
}

/// A good token for a user.
pub fn token(user: &str) -> String {
    mint(&signing_key(), &grant(user))
}

pub fn user(name: &str) -> UserId {
    auth::user_id(name)
}

impl Server {
    pub fn start() -> Server {
        Server::with(Options::default())
    }

    pub fn with(options: Options) -> Server {
        crate::log::listen();
        let (full, busy) = <(Arc<AtomicBool>, Arc<Mutex<()>>)>::default();
        let engine = Disk { store: MemoryStore::new(), full: Arc::clone(&full), busy: Arc::clone(&busy) };
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(run(options, engine, tell, stopped));
        });
        let address = told.recv().expect("the node starts");
        Server { address, full, busy, stop: Some(stop), thread: Some(thread) }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// One request on a connection of its own.
    pub fn ask(&self, method: &str, path: &str, token: Option<&str>, body: Option<&str>) -> Answer {
        self.client().ask(method, path, token, body)
    }

    /// Begins the end; the server goes on with what is under way.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits for the end.
    pub fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends without a panic");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if !std::thread::panicking() {
            self.join();
        }
    }
}

async fn run(
    options: Options,
    engine: Disk,
    tell: std::sync::mpsc::Sender<SocketAddr>,
    stopped: oneshot::Receiver<()>,
) {
    let keys = Arc::new(Keys::new(vec![signing_key().verifying_key()]).expect("one key"));
    let rules = Rules::for_audience("throng");
    let (ours, theirs) = reactor::handover_pair().expect("a pair of sockets");
    let shards = options.shards.unwrap_or(2);
    let settings = shard::Settings::new(shards, HashKey([3; 16]), Arc::clone(&keys), rules.clone());
    let config = node::Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        settings,
        idempotency: model::limits::IDEMPOTENCY_WINDOW,
        batch_max: 1_000,
        http: theirs,
    };
    let node = node::Node::start(config, Box::new(engine)).expect("the node starts");
    let state = State {
        handle: node.handle(),
        keys,
        rules,
        version: "1.2.3 \"test\"".to_owned(),
        origins: options.origins.iter().map(|origin| (*origin).to_owned()).collect(),
        dev: options.dev.then(|| Dev {
            signing: signing_key(),
            audience: "throng".to_owned(),
            issuer: None,
            token_lifetime: Span::seconds(3_600),
        }),
        limits: options.limits,
    };
    tell.send(node.summary().listen).expect("the test waits");
    let shutdown = async {
        let _ = stopped.await;
    };
    api::serve(ours, state, shutdown).await.expect("connections are received to the end");
    node.drain(Span(0)).await;
}
