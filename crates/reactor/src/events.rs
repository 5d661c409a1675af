//! What a reactor reports.

use rustix::io::Errno;

use crate::SocketId;

/// Something happened. Events of sockets that were closed in the meantime are not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Somebody connects: call [`Reactor::accept_some`](crate::Reactor::accept_some).
    Accept,
    /// There is something to read, or the connection broke: call [`Reactor::read`](crate::Reactor::read), once. It is not said
    /// again before that.
    Readable(SocketId),
    /// There is room for output that waits: call [`Reactor::flush`](crate::Reactor::flush).
    Writable(SocketId),
    /// A connection out is made.
    Connected(SocketId),
    /// A connection out failed; the socket is closed already.
    ConnectFailed(SocketId, Errno),
    /// The connection is gone while its reading is paused, and it is told once. Resume to read what came before, or
    /// close.
    HungUp(SocketId),
    /// [`Waker::wake`](crate::Waker::wake) was called, once or more often.
    Woken,
}
