//! Connections: receiving them, how many there may be, and how they end.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use model::limits::HEADERS_MAX;
use protocol::ErrorCode;
use reactor::{HandoverError, recv_fd};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::guard;
use crate::problem::Problem;
use crate::routes;
use crate::state::{Shared, State};
use crate::stream::Stream;

/// Longest message of a handover: what a shard reads in one go, and the head it had before.
const HANDOVER_BYTES_MAX: usize = 128 * 1024;
/// Longest request head, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The same complaint is logged so often at most.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// Serves the connections that come out of this side of a [`reactor::handover_pair`], until `shutdown` is over or the other side is gone;
/// then lets the requests under way end, for a while. It needs a tokio runtime with its I/O and its time.
///
/// # Errors
/// When the runtime cannot watch the descriptor, or nothing can be received from it any more.
pub async fn serve(connections: OwnedFd, state: State, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    // It carries packets and no stream, which only whoever reads and writes would notice: here it is waited for.
    let connections = UnixStream::from_std(connections.into())?;
    let server = Server::new(state);
    let mut tasks = JoinSet::new();
    let mut buffer = vec![0; HANDOVER_BYTES_MAX].into_boxed_slice();
    let mut shutdown = pin!(shutdown);
    let mut complained = None;
    let outcome = loop {
        let received = tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            Some(ended) = tasks.join_next() => {
                note_panic(ended);
                continue;
            }
            received = receive(&connections, &mut buffer) => received,
        };
        match received {
            Ok((fd, bytes)) => server.begin(fd, &buffer[..bytes], &mut tasks),
            Err(HandoverError::Closed) => break Ok(()),
            Err(HandoverError::Os(errno)) => break Err(errno.into()),
            // Whoever has taken the descriptors shall not fill the disk with this too.
            Err(error) if complained.is_none_or(|at: Instant| at.elapsed() >= COMPLAIN_EVERY) => {
                complained = Some(Instant::now());
                tracing::warn!(%error, "HTTP connections are lost on their way");
            }
            Err(_) => {}
        }
    };
    server.end(tasks).await;
    outcome
}

async fn receive(connections: &UnixStream, buffer: &mut [u8]) -> Result<(OwnedFd, usize), HandoverError> {
    loop {
        connections.readable().await.map_err(|_| HandoverError::Closed)?;
        let mut received = Ok(None);
        let look = || {
            received = recv_fd(connections, buffer);
            match received {
                Ok(None) => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        };
        if connections.try_io(Interest::READABLE, look).is_ok()
            && let Some(received) = received?
        {
            return Ok((received.fd, received.bytes));
        }
    }
}

fn note_panic(ended: Result<(), tokio::task::JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        tracing::error!("an HTTP request's handling panicked; its connection is closed");
    }
}

struct Server {
    shared: Arc<Shared>,
    router: axum::Router,
    present: Arc<Present>,
    stop: watch::Sender<bool>,
    /// The whole answer to a connection that is one too many.
    full: Vec<u8>,
}

impl Server {
    fn new(state: State) -> Server {
        let shared = Arc::new(Shared::new(state));
        let router = routes::router(&shared);
        let full = Problem::new(ErrorCode::Overloaded, "too many HTTP connections are open at the moment");
        Server {
            shared,
            router,
            present: Arc::default(),
            stop: watch::Sender::new(false),
            full: full.into_last_answer(),
        }
    }

    fn begin(&self, fd: OwnedFd, before: &[u8], tasks: &mut JoinSet<()>) {
        let socket = std::net::TcpStream::from(fd);
        let Ok(peer) = socket.peer_addr() else { return };
        let limits = &self.shared.state.limits;
        let Some(place) =
            self.present.enter(peer.ip(), limits.connections_max, limits.connections_per_address_max)
        else {
            self.shared.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
            // It fits the socket's empty buffer, or the client has bad luck: nobody waits here.
            let _ = io::Write::write(&mut &socket, &self.full);
            return;
        };
        // An answer is written in one go, so nothing is gained by waiting for more.
        let _ = socket.set_nodelay(true);
        let Ok(socket) = TcpStream::from_std(socket) else { return };
        let stream = Stream::new(socket, Bytes::copy_from_slice(before), limits.stall_deadline);
        tasks.spawn(connection(
            Arc::clone(&self.shared),
            self.router.clone(),
            place,
            peer,
            stream,
            self.stop.subscribe(),
        ));
    }

    /// Lets every connection end after the request it is in.
    async fn end(self, mut tasks: JoinSet<()>) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        let all = async {
            while let Some(ended) = tasks.join_next().await {
                note_panic(ended);
            }
        };
        if tokio::time::timeout(self.shared.state.limits.shutdown_deadline, all).await.is_err() {
            tracing::warn!("requests that were still under way at the end were cut off");
        }
    }
}

async fn connection(
    shared: Arc<Shared>,
    router: axum::Router,
    place: Place,
    peer: SocketAddr,
    stream: Stream,
    mut stop: watch::Receiver<bool>,
) {
    shared.counters.connections.fetch_add(1, Ordering::Relaxed);
    let _leaving = Leaving(Arc::clone(&shared));
    let limits = shared.state.limits;
    let roomy = place.others < limits.connections_max / 2;
    let router = TowerToHyperService::new(router);
    let answer = service_fn(|request| guard::answer(&shared, &router, peer, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_deadline)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .half_close(true)
        .keep_alive(roomy)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        ended = &mut connection => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "an HTTP connection ended early");
    }
    drop(place);
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Counts a connection out, however its task ends.
struct Leaving(Arc<Shared>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Who is connected.
#[derive(Default)]
struct Present(Mutex<Crowd>);

#[derive(Default)]
struct Crowd {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection's place in the crowd.
struct Place {
    present: Arc<Present>,
    address: IpAddr,
    /// How many there were before it.
    others: usize,
}

impl Present {
    fn enter(self: &Arc<Self>, address: IpAddr, most: usize, most_per_address: usize) -> Option<Place> {
        let address = neighbourhood(address);
        let mut crowd = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = crowd.all;
        let from_there = crowd.by_address.get(&address).copied().unwrap_or(0);
        if others >= most || from_there >= most_per_address {
            return None;
        }
        crowd.all += 1;
        crowd.by_address.insert(address, from_there + 1);
        Some(Place { present: Arc::clone(self), address, others })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut crowd = self.present.0.lock().unwrap_or_else(PoisonError::into_inner);
        crowd.all -= 1;
        match crowd.by_address.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                crowd.by_address.remove(&self.address);
            }
        }
    }
}

/// What one customer of a provider has: an IPv4 address, or the /64 of an IPv6 address.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX))),
        four => four,
    }
}
