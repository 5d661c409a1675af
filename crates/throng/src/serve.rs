//! `throng serve`: the composition of the whole server.
//!
//! Owns the order in which things start and stop, and the words with which that is told. What each thing does, its room knows.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use auth::{Grant, Keys, SigningKey, mint};
use model::{Span, Wall};
use node::{Node, StartError};
use store_sqlite::{OpenError, SqliteStore};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::control::Control;
use crate::descriptors::Tables;
use crate::keys::{self, KeysError};
use configuration::Config;

/// Why the server could not start, or had to stop.
#[derive(Debug)]
pub enum ServeError {
    /// There is no usable key to check tokens with.
    Keys(KeysError),
    /// The database cannot be used.
    Store(OpenError),
    /// The node did not start.
    Start(StartError),
    /// A system resource could not be had; says which.
    System(&'static str, std::io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Keys(error) => error.fmt(f),
            ServeError::Store(error) => error.fmt(f),
            ServeError::Start(StartError::Bind(error)) => {
                write!(f, "{error} (choose another address with --listen)")
            }
            ServeError::Start(error) => error.fmt(f),
            ServeError::System(what, _) => write!(f, "cannot make {what}"),
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ServeError::Keys(error) => error.source(),
            ServeError::Store(error) => error.source(),
            ServeError::Start(error) => error.source(),
            ServeError::System(_, error) => Some(error),
        }
    }
}

/// Serves until told to stop.
///
/// # Errors
/// When it cannot start, or the world takes something away that it cannot do without.
pub fn run(config: Config) -> Result<ExitCode, ServeError> {
    node::fix_thresholds();
    let shards = shards(&config);
    let tables = Tables::prepare(shards);
    tables.tell();
    // The directory is locked before anything is made in it.
    let store = {
        let options = store_sqlite::Options { cache_bytes: config.store.cache_bytes, ..Default::default() };
        SqliteStore::open(&config.data, &options).map_err(ServeError::Store)?
    };
    if config.dev
        && let Some(made) = keys::generate_if_missing(&config).map_err(ServeError::Keys)?
    {
        tracing::info!(file = %made.signing.display(), "made a signing key for development");
    }
    let verifying = Arc::new(keys::verifying_keys(&config).map_err(ServeError::Keys)?);

    let (to_http, from_shards) =
        reactor::handover_pair().map_err(|error| ServeError::System("the socket to the HTTP side", error))?;
    let mut settings = settings(&config, &store, shards, &verifying);
    settings.connections_max = tables.connections_max(&config);
    let node = node::Config {
        listen: config.listen,
        settings,
        idempotency: config.messages.idempotency_window,
        batch_max: config.store.commit_batch_max,
        http: to_http,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("http")
        .enable_all()
        .build()
        .map_err(|error| ServeError::System("the runtime of the HTTP side", error))?;
    // Both have descriptors that other threads write to: a shard wakes the runtime with an answer, and a signal may interrupt any
    // thread. So they are made before the shards part their descriptor tables.
    let stop = {
        let _within = runtime.enter();
        Stop::watch().map_err(|error| ServeError::System("the watch for signals", error))?
    };
    let node = Node::start(node, Box::new(store)).map_err(ServeError::Start)?;
    let dev = if config.dev { Some(development(&config)?) } else { None };
    runtime.block_on(serve(&config, node, from_shards, verifying, dev, stop))
}

/// The signals that ask the server to stop.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn watch() -> std::io::Result<Stop> {
        Ok(Stop { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Serves HTTP, and waits for the signal to stop.
async fn serve(
    config: &Config,
    node: Node,
    connections: std::os::fd::OwnedFd,
    keys: Arc<Keys>,
    dev: Option<api::Dev>,
    mut stop: Stop,
) -> Result<ExitCode, ServeError> {
    let summary = node.summary();
    // What asks through it meanwhile finds a server at work.
    let control = Control::start(&config.data, node.handle());
    if let Err(error) = &control {
        tracing::warn!(%error, "there is no control socket: `throng seed` needs this server stopped");
    }
    tell_started(config, &node);
    if let Some(dev) = &dev {
        print_welcome(summary.listen, dev);
    }
    let state = api::State {
        handle: node.handle(),
        keys,
        rules: keys::rules(config),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        limits: api::Limits::default(),
        origins: config.origins.clone(),
        dev,
    };
    let (stop_http, stopped) = tokio::sync::oneshot::channel();
    let http = tokio::spawn(api::serve(connections, state, async move {
        let _ = stopped.await;
    }));
    let quiet = tokio::spawn(give_memory_back(node.handle()));
    stop.asked().await;
    quiet.abort();
    drop(control);
    tracing::info!(seconds = config.drain.0 / 1_000, "stopping: clients are told to come back");
    // Shards accept nobody any more from here on, so HTTP only ends what is under way.
    let _ = stop_http.send(());
    let in_time = node.drain(config.drain).await;
    let _ = tokio::time::timeout(Duration::from_secs(2), http).await;
    if !in_time {
        tracing::warn!("some connections were cut off at the end of the drain");
    }
    tracing::info!("stopped; everything acknowledged is on disk");
    Ok(ExitCode::SUCCESS)
}

/// After every burst, as soon as it is over.
async fn give_memory_back(handle: node::Handle) {
    let mut given = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let rests = handle.shards().iter().map(|shard| shard.rests()).sum();
        if rests != given {
            given = rests;
            tokio::task::spawn_blocking(node::give_back).await.ok();
        }
    }
}

fn shards(config: &Config) -> u16 {
    match config.shards {
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(256) as u16),
        shards => shards,
    }
}

fn settings(config: &Config, store: &SqliteStore, shards: u16, keys: &Arc<Keys>) -> shard::Settings {
    let defaults = shard::Settings::new(shards, store.hash_key(), Arc::clone(keys), keys::rules(config));
    shard::Settings {
        domain: domain::Settings {
            residents_max: config.messages.resident_conversations_max,
            receipts_members_max: config.messages.receipts_members_max,
        },
        origins: config.origins.clone(),
        unauthenticated_max: config.connections.unauthenticated_max as usize,
        unauthenticated_per_address_max: config.connections.unauthenticated_per_address_max as usize,
        admission_per_second: config.admission.per_second,
        admission_burst: config.admission.burst,
        connect_deadline: config.connections.connect_deadline,
        ping: config.connections.ping_interval,
        payload_bytes_max: config.messages.payload_bytes_max,
        reconnect: (config.connections.reconnect_min, config.connections.reconnect_max),
        commands_per_second: config.commands.per_second,
        commands_burst: config.commands.burst,
        ..defaults
    }
}

fn tell_started(config: &Config, node: &Node) {
    let summary = node.summary();
    let shards = node.handle().shard_count();
    if summary.own_tables < shards {
        tracing::warn!(
            "{} of {shards} shards share one table of open files, since the system refuses more tables (as in Docker's default \
             profile): the limit of open files holds for all of them together",
            shards - summary.own_tables
        );
    }
    tracing::info!(listen = %summary.listen, data = %config.data.display(), devices = summary.devices, shards, "serving");
}

fn development(config: &Config) -> Result<api::Dev, ServeError> {
    Ok(api::Dev {
        signing: keys::signing_key(config).map_err(ServeError::Keys)?,
        audience: config.auth.audience.clone(),
        issuer: config.auth.issuer.clone(),
        token_lifetime: Span::seconds(3_600).min(config.auth.token_lifetime_max),
    })
}

/// What somebody trying it out wants to know: the page, and tokens to go on with.
fn print_welcome(listen: std::net::SocketAddr, dev: &api::Dev) {
    println!(
        "throng is running for development. Open this page in two tabs and chat:\n\n  http://{listen}/\n"
    );
    println!("Or connect to ws://{listen}/v1/socket with a token:\n");
    for user in ["alice", "bob"] {
        println!("  {user}: {}\n", token(&dev.signing, user, dev));
    }
    println!(
        "Tokens are valid for an hour; `throng token --user alice --device 1` makes more. Ctrl-C stops."
    );
}

fn token(signing: &SigningKey, user: &str, dev: &api::Dev) -> String {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let grant = Grant {
        user,
        device: 1,
        session: "dev",
        audience: &dev.audience,
        issuer: dev.issuer.as_deref(),
        issued_at: Wall(since),
        lifetime: dev.token_lifetime,
    };
    mint(signing, &grant)
}
