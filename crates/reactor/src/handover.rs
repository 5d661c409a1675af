//! Handing a connection to another thread, with the bytes already read, over a Unix socket (`SCM_RIGHTS`).
//!
//! The descriptor travels as the kernel's own reference, so it arrives even where the two threads have different
//! descriptor tables. One message holds one connection: the socket is a `SOCK_SEQPACKET`, which never cuts one.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Why a connection was not handed over. The caller still has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoverError {
    /// The other side does not keep up (or too many descriptors are under way, `TOOMANYREFS`).
    Full,
    /// The other side is gone.
    Closed,
    /// More bytes than a message holds, or than the receiver has room for.
    TooLong,
    /// A message without a descriptor, or with one there was no room for in the receiver's table.
    NoDescriptor,
    /// Anything else.
    Os(Errno),
}

impl From<Errno> for HandoverError {
    fn from(errno: Errno) -> HandoverError {
        match errno {
            Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS => HandoverError::Full,
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN | Errno::CONNREFUSED => HandoverError::Closed,
            Errno::MSGSIZE => HandoverError::TooLong,
            errno => HandoverError::Os(errno),
        }
    }
}

impl fmt::Display for HandoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandoverError::Full => "the receiver of connections does not keep up",
            HandoverError::Closed => "the receiver of connections is gone",
            HandoverError::TooLong => "too many bytes to hand over with a connection",
            HandoverError::NoDescriptor => "no descriptor came with the message",
            HandoverError::Os(_) => "a connection could not be handed over",
        })
    }
}

impl std::error::Error for HandoverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            HandoverError::Os(errno) => Some(errno),
            _ => None,
        }
    }
}

/// Two connected sockets, non-blocking: what goes into one with [`send_fd`] comes out of the other with [`recv_fd`].
/// Several threads may send into the same one.
pub fn handover_pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Sends a descriptor and the bytes read from it so far. The caller's own descriptor stays open until it is dropped.
pub fn send_fd(to: impl AsFd, fd: impl AsFd, bytes: &[u8]) -> Result<(), HandoverError> {
    let fds = [fd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let pushed = control.push(SendAncillaryMessage::ScmRights(&fds));
    debug_assert!(pushed, "the space is made for one descriptor");
    // A message of no bytes would look like the end: the first byte is always there and means nothing.
    let parts = [IoSlice::new(&[0]), IoSlice::new(bytes)];
    let sent = rustix::io::retry_on_intr(|| {
        net::sendmsg(&to, &parts, &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    })?;
    debug_assert_eq!(sent, bytes.len() + 1, "a sequenced packet is sent whole");
    Ok(())
}

/// A connection that was handed over.
#[derive(Debug)]
pub struct Received {
    /// The connection; it is non-blocking and closes on exec.
    pub fd: OwnedFd,
    /// How many bytes of the buffer were read from it before.
    pub bytes: usize,
}

/// Receives what [`send_fd`] sent; `None` when nothing is there (yet). The buffer must hold the longest message.
pub fn recv_fd(from: impl AsFd, buffer: &mut [u8]) -> Result<Option<Received>, HandoverError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut first = [0];
    let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(buffer)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let message = match rustix::io::retry_on_intr(|| net::recvmsg(&from, &mut parts, &mut control, flags)) {
        Err(Errno::AGAIN) => return Ok(None),
        other => other?,
    };
    let mut received = None;
    for item in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = item {
            received = fds.last();
        }
    }
    match (message.bytes, received) {
        (0, None) => Err(HandoverError::Closed),
        (_, None) => Err(HandoverError::NoDescriptor),
        (_, Some(_)) if message.flags.contains(ReturnFlags::TRUNC) => Err(HandoverError::TooLong),
        (bytes, Some(fd)) => Ok(Some(Received { fd, bytes: bytes.saturating_sub(1) })),
    }
}
