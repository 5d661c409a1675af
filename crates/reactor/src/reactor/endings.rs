//! How sockets go: closed, half-closed and waited for, handed over.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, Shutdown};

use crate::slots::{Armed, NONE, Phase, Reading};
use crate::{Reactor, Sent, SocketId};

impl Reactor {
    /// Closes at once; what waits is dropped. Nothing happens when the id is stale.
    pub fn close(&mut self, id: SocketId) {
        if let Some((fd, outbox)) = self.slots.remove(id) {
            // The only reference to the socket: closing takes it out of the epoll set.
            drop(fd);
            self.vacated(outbox);
        }
    }

    fn vacated(&mut self, outbox: u32) {
        if outbox != NONE {
            self.outboxes.close(outbox);
        }
        if let Some(door) = &mut self.door
            && door.resting_until.is_some()
        {
            door.descriptor_freed();
            self.arm_listener();
        }
    }

    /// Sends what waits, then says that nothing more comes, and closes when the peer has closed too, or after
    /// [`Options::linger`]. What the peer still sends is read and dropped: closing with unread input would reset the
    /// connection, and the peer could lose the last words. Events of this socket are no longer reported.
    pub fn close_after_flush(&mut self, id: SocketId) {
        let Some((_, outbox, state)) = self.slots.get_mut(id) else { return };
        match state.phase {
            Phase::Connecting => return self.close(id),
            Phase::Lingering => return,
            Phase::Open => {}
        }
        let drained = *outbox == NONE;
        state.phase = Phase::Lingering;
        if state.reading == Reading::Paused {
            state.reading = Reading::Awaited;
        }
        self.lingering.push_back((Instant::now() + self.options.linger, id));
        match drained {
            true => self.half_close(id),
            false => self.arm(id, None),
        }
    }

    /// Says that nothing more comes; closes when the peer has said so before.
    fn half_close(&mut self, id: SocketId) {
        let Some((fd, _, state)) = self.slots.get_mut(id) else { return };
        if state.reading == Reading::Ended || net::shutdown(fd, Shutdown::Write).is_err() {
            return self.close(id);
        }
        self.arm(id, None);
    }

    pub(super) fn attend_lingering(&mut self, id: SocketId, flags: epoll::EventFlags) {
        let Some((fd, outbox, state)) = self.slots.get_mut(id) else { return };
        if flags.contains(epoll::EventFlags::OUT) && *outbox != NONE {
            match self.flush(id) {
                Ok(Sent { queued_bytes: 0 }) => self.half_close(id),
                Ok(_) => {}
                Err(_) => self.close(id),
            }
            return;
        }
        match rustix::io::retry_on_intr(|| net::recv(fd, &mut *self.buffer, RecvFlags::DONTWAIT)) {
            Ok((0, _)) if *outbox == NONE => self.close(id),
            Ok((0, _)) => {
                // It reads no end twice: only the output keeps it.
                state.reading = Reading::Ended;
                self.arm(id, None);
            }
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(_) => self.close(id),
        }
    }

    /// Takes a socket out, to be handed over. Output that waits is dropped.
    pub fn detach(&mut self, id: SocketId) -> Option<OwnedFd> {
        let (fd, slot) = self.slots.get(id)?;
        if slot.state.armed != Armed::Absent {
            // The descriptor lives on elsewhere, so closing would not do this.
            let _ = epoll::delete(&self.epoll, fd.as_fd());
        }
        let (fd, outbox) = self.slots.remove(id)?;
        self.vacated(outbox);
        Some(fd)
    }
}
