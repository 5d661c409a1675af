//! Connecting out: the load generator's half.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, sockopt};

use crate::listener::stream_socket;

/// How an outgoing connection is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectOptions {
    /// The address to come from. One address has about 28 thousand ports towards one listener, so a fleet on one machine
    /// uses many of 127.0.0.0/8.
    pub source: Option<IpAddr>,
    /// `SO_SNDBUF`; the kernel's own tuning when `None`.
    pub send_buffer_bytes: Option<usize>,
    /// `SO_RCVBUF`; the kernel's own tuning when `None`.
    pub receive_buffer_bytes: Option<usize>,
}

/// Why no connection was begun. (One that was begun fails with [`Event::ConnectFailed`](crate::Event::ConnectFailed).)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectError {
    /// No descriptor or memory is left for a socket.
    Exhausted(Errno),
    /// The source address cannot be used.
    Source(Errno),
    /// The kernel refused at once (`ADDRNOTAVAIL`: no port left at this source; `CONNREFUSED`; `NETUNREACH`).
    Connect(Errno),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnectError::Exhausted(_) => "no descriptor left for a connection",
            ConnectError::Source(_) => "the source address cannot be used",
            ConnectError::Connect(_) => "the connection was refused at once",
        })
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Exhausted(errno) | ConnectError::Source(errno) | ConnectError::Connect(errno) => {
                Some(errno)
            }
        }
    }
}

/// Begins a connection. The socket becomes writable when it is made, or has an error when it is not.
pub(crate) fn begin(to: SocketAddr, options: &ConnectOptions) -> Result<OwnedFd, ConnectError> {
    let fd = stream_socket(to).map_err(ConnectError::Exhausted)?;
    let settings = || -> rustix::io::Result<()> {
        sockopt::set_tcp_nodelay(&fd, true)?;
        if let Some(bytes) = options.send_buffer_bytes {
            sockopt::set_socket_send_buffer_size(&fd, bytes)?;
        }
        if let Some(bytes) = options.receive_buffer_bytes {
            sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
        }
        Ok(())
    };
    settings().map_err(ConnectError::Exhausted)?;
    if let Some(source) = options.source {
        choose_port_when_connecting(&fd);
        net::bind(&fd, &SocketAddr::new(source, 0)).map_err(ConnectError::Source)?;
    }
    match net::connect(&fd, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(errno) => Err(ConnectError::Connect(errno)),
    }
}

/// Lets the kernel choose the port when the destination is known, so that one port serves many destinations. Where
/// it is not known (before Linux 4.2), there are only fewer connections.
fn choose_port_when_connecting(fd: &OwnedFd) {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the option is one int at a valid address.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            std::ptr::from_ref(&on).cast(),
            size_of_val(&on) as libc::socklen_t,
        );
    }
}
