//! The listening socket, and what to do when there is no descriptor for whoever knocks.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::SocketId;

/// How a listener is made.
#[derive(Debug, Clone, Copy)]
pub struct ListenOptions {
    /// Connections the kernel completes and keeps before they are accepted; it cuts this to `net.core.somaxconn`.
    pub backlog: i32,
    /// Whether several listeners (one per shard) share the address; the kernel spreads connections over them.
    pub reuse_port: bool,
    /// `SO_SNDBUF` of the accepted sockets; the kernel's own tuning when `None`.
    pub send_buffer_bytes: Option<usize>,
    /// `SO_RCVBUF` of the accepted sockets; the kernel's own tuning when `None`.
    pub receive_buffer_bytes: Option<usize>,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: 65_535,
            reuse_port: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }
}

/// The address cannot be listened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindError {
    /// The address asked for.
    pub address: SocketAddr,
    /// `ADDRINUSE`: taken; `ADDRNOTAVAIL`: not of this machine; `ACCESS`: a port for privileged processes.
    pub errno: Errno,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}", self.address)
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.errno)
    }
}

/// A bound, listening socket.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    address: SocketAddr,
}

impl Listener {
    /// Binds and listens. With several shards, make each one's in its own thread after it parted its descriptor table.
    pub fn bind(address: SocketAddr, options: &ListenOptions) -> Result<Listener, BindError> {
        let make = || -> rustix::io::Result<Listener> {
            let fd = bound(address, options.reuse_port)?;
            // Accepted sockets inherit these, which saves each of them a system call.
            sockopt::set_tcp_nodelay(&fd, true)?;
            if let Some(bytes) = options.send_buffer_bytes {
                sockopt::set_socket_send_buffer_size(&fd, bytes)?;
            }
            if let Some(bytes) = options.receive_buffer_bytes {
                sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
            }
            net::listen(&fd, options.backlog)?;
            let address = net::getsockname(&fd)?.try_into()?;
            Ok(Listener { fd, address })
        };
        make().map_err(|errno| BindError { address, errno })
    }

    /// Where it listens; with the port the kernel chose when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Stops listening for everybody who holds this socket, copies in other descriptor tables included.
    pub(crate) fn stop(self) {
        // Nothing can be done about a failure, and closing follows.
        let _ = net::shutdown(&self.fd, net::Shutdown::Both);
    }
}

/// Whether somebody listens here already, and which port to listen on when `address` has 0. Listeners that share their
/// port are made without complaint beside a stranger's of the same user, so a server asks this first.
pub fn free_address(address: SocketAddr) -> Result<SocketAddr, BindError> {
    let look = || -> rustix::io::Result<SocketAddr> {
        let fd = bound(address, false)?;
        net::getsockname(&fd)?.try_into()
    };
    look().map_err(|errno| BindError { address, errno })
}

fn bound(address: SocketAddr, reuse_port: bool) -> rustix::io::Result<OwnedFd> {
    let fd = stream_socket(address)?;
    // So that a restarted server need not wait for the old one's connections to time out.
    sockopt::set_socket_reuseaddr(&fd, true)?;
    sockopt::set_socket_reuseport(&fd, reuse_port)?;
    net::bind(&fd, &address)?;
    Ok(fd)
}

pub(crate) fn stream_socket(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// A connection that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Its socket.
    pub id: SocketId,
    /// Who is at the other end.
    pub peer: SocketAddr,
}

/// Why accepting stopped before its batch was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptError {
    /// No descriptor or memory is left (`MFILE`: this table's limit, `NFILE`: the machine's, `NOBUFS`, `NOMEM`). The one
    /// at the head of the line was dropped if that was possible; accepting goes on by itself when a socket closes, or
    /// after a second.
    Exhausted(Errno),
    /// The listener itself is broken; it is paused.
    Listener(Errno),
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AcceptError::Exhausted(_) => "no descriptor left for a new connection",
            AcceptError::Listener(_) => "the listener is broken",
        })
    }
}

impl std::error::Error for AcceptError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AcceptError::Exhausted(errno) | AcceptError::Listener(errno) => Some(errno),
        }
    }
}

/// How long accepting rests when no descriptor was left and none is freed here: another process may have taken them.
const REST: Duration = Duration::from_secs(1);

/// The listener with its reasons not to accept.
#[derive(Debug)]
pub(crate) struct Door {
    pub listener: Listener,
    /// By the caller, for admission.
    pub paused: bool,
    /// Out of descriptors until then.
    pub resting_until: Option<Instant>,
    pub armed: bool,
    /// Closed to have one descriptor with which to turn somebody away.
    spare: Option<OwnedFd>,
}

/// One attempt to accept.
pub(crate) enum Knock {
    Accepted(OwnedFd, SocketAddr),
    Nobody,
    Failed(AcceptError),
}

impl Door {
    pub fn new(listener: Listener) -> Door {
        Door { listener, paused: false, resting_until: None, armed: false, spare: spare().ok() }
    }

    pub fn accept(&mut self) -> Knock {
        loop {
            match accept_one(&self.listener) {
                Ok((fd, Some(peer))) => return Knock::Accepted(fd, peer),
                // A peer without an address cannot be counted against one.
                Ok((_, None)) => {}
                Err(Errno::AGAIN) => return Knock::Nobody,
                Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    self.turn_one_away();
                    self.rest();
                    return Knock::Failed(AcceptError::Exhausted(errno));
                }
                Err(
                    errno @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP | Errno::FAULT),
                ) => {
                    self.paused = true;
                    return Knock::Failed(AcceptError::Listener(errno));
                }
                // The connection failed before it was accepted (accept(2) lists the network errors), or a signal came.
                Err(_) => {}
            }
        }
    }

    /// Lets the line wait.
    pub fn rest(&mut self) {
        self.resting_until = Some(Instant::now() + REST);
    }

    /// Accepts and drops the first in line, so that one client learns at once instead of waiting for nobody.
    fn turn_one_away(&mut self) {
        self.spare = None;
        drop(accept_one(&self.listener));
        self.spare = spare().ok();
    }

    /// A descriptor was freed: the spare one comes first.
    pub fn descriptor_freed(&mut self) {
        if self.spare.is_none() {
            self.spare = spare().ok();
        }
        if self.spare.is_some() {
            self.resting_until = None;
        }
    }

    pub fn should_be_armed(&self) -> bool {
        !self.paused && self.resting_until.is_none()
    }
}

fn spare() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC)?)
}

fn accept_one(listener: &Listener) -> rustix::io::Result<(OwnedFd, Option<SocketAddr>)> {
    let (fd, peer) = net::acceptfrom_with(&listener.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    Ok((fd, peer.and_then(|peer| peer.try_into().ok())))
}
