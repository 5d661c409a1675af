//! Bytes in and out of open sockets.

use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags};

use crate::outbox::SLICES_MAX;
use crate::slots::{NONE, Phase, Reading, Slots};
use crate::{Reactor, SocketId};

/// Bytes one flush writes before the other sockets get their turn.
const FLUSH_BYTES_MAX: usize = 256 * 1024;

/// What a read gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Read<'a> {
    /// Bytes in the reactor's buffer, valid until its next call.
    Bytes(&'a mut [u8]),
    /// Nothing now; an event says when.
    Blocked,
    /// The peer has sent all it will; it may still read. (A stale id reads as closed too.)
    Closed,
    /// The connection broke.
    Reset(Errno),
}

/// Output was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that wait for the socket, those of earlier sends included. 0: all is with the kernel.
    pub queued_bytes: usize,
}

/// Output was not taken. The connection is of no more use; close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// The id is stale, or the socket only waits for its end.
    Stale,
    /// The connection broke.
    Broken(Errno),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Stale => "the connection is closed",
            SendError::Broken(_) => "the connection broke",
        })
    }
}

impl std::error::Error for SendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SendError::Stale => None,
            SendError::Broken(errno) => Some(errno),
        }
    }
}

impl Reactor {
    /// Reads once into the reactor's own buffer, which is as large as one connection's turn. Once per
    /// [`Event::Readable`]: a second read says `Blocked`, so that nobody's turn is longer than another's.
    pub fn read(&mut self, id: SocketId) -> Read<'_> {
        let Reactor { slots, buffer, again, .. } = self;
        read(slots, again, id, buffer)
    }

    /// As [`Reactor::read`], into a buffer of the caller's, which leaves the reactor free meanwhile.
    pub fn read_into<'a>(&mut self, id: SocketId, buffer: &'a mut [u8]) -> Read<'a> {
        read(&mut self.slots, &mut self.again, id, buffer)
    }

    /// Leaves what comes in the kernel, so that the peer feels it.
    pub fn pause_reading(&mut self, id: SocketId) {
        if let Some((_, _, state)) = self.slots.get_mut(id)
            && state.reading != Reading::Ended
        {
            state.reading = Reading::Paused;
            self.arm(id, None);
        }
    }

    /// Undoes [`Reactor::pause_reading`].
    pub fn resume_reading(&mut self, id: SocketId) {
        if let Some((_, _, state)) = self.slots.get_mut(id)
            && state.reading == Reading::Paused
        {
            state.reading = Reading::Awaited;
            self.arm(id, None);
        }
    }

    /// Sends the slices one after the other. What the kernel does not take is copied and goes out with
    /// [`Reactor::flush`] when the socket is writable; how much may wait is the caller's to judge.
    pub fn send(&mut self, id: SocketId, slices: &[IoSlice<'_>]) -> Result<Sent, SendError> {
        let (fd, outbox, state) = self.slots.get_mut(id).ok_or(SendError::Stale)?;
        if state.phase == Phase::Lingering {
            return Err(SendError::Stale);
        }
        let waits = *outbox != NONE || state.phase == Phase::Connecting;
        let mut skip = if waits { 0 } else { write(fd, slices).map_err(SendError::Broken)? };
        let len: usize = slices.iter().map(|slice| slice.len()).sum();
        if skip == len {
            return Ok(Sent { queued_bytes: if *outbox == NONE { 0 } else { self.outboxes.bytes(*outbox) } });
        }
        if *outbox == NONE {
            *outbox = self.outboxes.open();
        }
        let index = *outbox;
        for slice in slices {
            let now = skip.min(slice.len());
            self.outboxes.push(index, &slice[now..]);
            skip -= now;
        }
        let queued_bytes = self.outboxes.bytes(index);
        if !waits {
            self.arm(id, None);
        }
        Ok(Sent { queued_bytes })
    }

    /// Sends what waits, as far as the socket takes it.
    pub fn flush(&mut self, id: SocketId) -> Result<Sent, SendError> {
        let (fd, outbox, state) = self.slots.get_mut(id).ok_or(SendError::Stale)?;
        if *outbox == NONE || state.phase == Phase::Connecting {
            return Ok(Sent { queued_bytes: 0 });
        }
        let index = *outbox;
        let mut written = 0;
        loop {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.outboxes.slices(index, &mut slices);
            let len: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            let now = write(fd, &slices[..count]).map_err(SendError::Broken)?;
            let left = self.outboxes.consume(index, now);
            written += now;
            if left == 0 {
                *outbox = NONE;
                self.outboxes.close(index);
                self.arm(id, None);
                return Ok(Sent { queued_bytes: 0 });
            }
            if now < len || written >= FLUSH_BYTES_MAX {
                return Ok(Sent { queued_bytes: left });
            }
        }
    }

    /// Bytes that wait for this socket.
    pub fn queued(&self, id: SocketId) -> usize {
        match self.slots.get(id) {
            Some((_, slot)) if slot.outbox != NONE => self.outboxes.bytes(slot.outbox),
            _ => 0,
        }
    }
}

fn read<'a>(
    slots: &mut Slots,
    again: &mut VecDeque<SocketId>,
    id: SocketId,
    buffer: &'a mut [u8],
) -> Read<'a> {
    let Some((fd, _, state)) = slots.get_mut(id) else { return Read::Closed };
    match state.reading {
        Reading::Awaited | Reading::Again | Reading::Paused => return Read::Blocked,
        Reading::Ready => state.reading = Reading::Awaited,
        Reading::Ended => return Read::Closed,
    }
    match rustix::io::retry_on_intr(|| net::recv(fd, &mut *buffer, RecvFlags::DONTWAIT)) {
        Ok((0, _)) => {
            state.reading = Reading::Ended;
            Read::Closed
        }
        Ok((count, _)) => {
            // Otherwise it took all there was, and what comes later is an event.
            if count == buffer.len() || state.ending {
                state.reading = Reading::Again;
                again.push_back(id);
            }
            Read::Bytes(&mut buffer[..count])
        }
        Err(Errno::AGAIN) => Read::Blocked,
        Err(errno) => {
            state.reading = Reading::Ended;
            Read::Reset(errno)
        }
    }
}

/// Writes as much as the socket takes; 0 when it takes nothing.
fn write(fd: &OwnedFd, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
    /// `IOV_MAX`: the kernel refuses more. What is beyond it waits like anything else that was not taken.
    const KERNEL_SLICES_MAX: usize = 1024;
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = rustix::io::retry_on_intr(|| match slices {
        [] => Ok(0),
        [one] => net::send(fd, one, flags),
        many => {
            let many = &many[..many.len().min(KERNEL_SLICES_MAX)];
            net::sendmsg(fd, many, &mut SendAncillaryBuffer::default(), flags)
        }
    });
    match sent {
        Err(Errno::AGAIN) => Ok(0),
        other => other,
    }
}
