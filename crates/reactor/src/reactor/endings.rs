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

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use crate::{Event, ListenOptions, Options, Reactor, Waker};

    #[test]
    fn a_freed_descriptor_ends_the_listeners_rest_at_once() {
        let mut reactor =
            Reactor::new(Waker::new().expect("an eventfd"), Options::default()).expect("an epoll set");
        let loopback = "127.0.0.1:0".parse().expect("an address");
        let address = reactor.listen(loopback, &ListenOptions::default()).expect("a free port");
        let _inside = TcpStream::connect(address).expect("a connection");
        reactor.wait(None).expect("a wait");
        assert_eq!(reactor.next_event(), Some(Event::Accept));
        let mut accepted = Vec::new();
        reactor.accept_some(1, &mut accepted).expect("a connection");

        reactor.rest();
        let _waiting = TcpStream::connect(address).expect("the kernel completes it");
        assert_eq!(reactor.wait(Some(Duration::ZERO)).expect("a wait"), 0, "it rests");
        reactor.close(accepted[0].id);
        assert_eq!(reactor.wait(Some(Duration::ZERO)).expect("a wait"), 1, "long before its rest is over");
        assert_eq!(reactor.next_event(), Some(Event::Accept));
    }
}
