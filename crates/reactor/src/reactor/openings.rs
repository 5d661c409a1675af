//! How sockets come: accepted, connected, taken over.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::sockopt;

use super::{LISTENER, flags_of};
use crate::listener::{Door, Knock};
use crate::slots::{Armed, Phase, State};
use crate::{
    AcceptError, Accepted, BindError, ConnectError, ConnectOptions, Event, ListenOptions, Listener, Reactor,
    SocketId,
};

/// Coming in.
impl Reactor {
    /// Listens on `address`; what listened before stops.
    pub fn listen(&mut self, address: SocketAddr, options: &ListenOptions) -> Result<SocketAddr, BindError> {
        let listener = Listener::bind(address, options)?;
        let address = listener.address();
        self.listen_on(listener).map_err(|errno| BindError { address, errno })?;
        Ok(address)
    }

    /// Accepts from a listener made elsewhere; what listened before stops.
    pub fn listen_on(&mut self, listener: Listener) -> Result<(), Errno> {
        self.stop_listening();
        epoll::add(&self.epoll, listener.fd(), epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        let mut door = Door::new(listener);
        door.armed = true;
        self.door = Some(door);
        Ok(())
    }

    /// Where it listens.
    pub fn listening(&self) -> Option<SocketAddr> {
        self.door.as_ref().map(|door| door.listener.address())
    }

    /// Stops listening: from now on the kernel refuses connections here, and those not accepted yet are reset.
    pub fn stop_listening(&mut self) {
        if let Some(door) = self.door.take() {
            let _ = epoll::delete(&self.epoll, door.listener.fd());
            door.listener.stop();
        }
    }

    /// Leaves whoever connects waiting in the kernel's queue.
    pub fn pause_accepting(&mut self) {
        if let Some(door) = &mut self.door {
            door.paused = true;
        }
        self.arm_listener();
    }

    /// Undoes [`Reactor::pause_accepting`].
    pub fn resume_accepting(&mut self) {
        if let Some(door) = &mut self.door {
            door.paused = false;
        }
        self.arm_listener();
    }

    /// Lets those who connect wait until a descriptor is freed, or a while.
    pub(super) fn rest(&mut self) {
        if let Some(door) = &mut self.door {
            door.rest();
        }
        self.arm_listener();
    }

    pub(super) fn arm_listener(&mut self) {
        let Some(door) = &mut self.door else { return };
        let wish = door.should_be_armed();
        if wish != door.armed {
            let flags = if wish { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
            let data = epoll::EventData::new_u64(LISTENER);
            let told = epoll::modify(&self.epoll, door.listener.fd(), data, flags);
            debug_assert!(told.is_ok(), "the listener is not in the set: {told:?}");
            door.armed = wish;
        }
    }

    /// Accepts at most `max` connections and appends them to `accepted`; those left are reported by the next wait. An
    /// error comes after those that were accepted before it.
    pub fn accept_some(&mut self, max: usize, accepted: &mut Vec<Accepted>) -> Result<(), AcceptError> {
        for _ in 0..max {
            let Some(door) = &mut self.door else { return Ok(()) };
            if !door.should_be_armed() {
                return Ok(());
            }
            match door.accept() {
                Knock::Nobody => return Ok(()),
                Knock::Failed(error) => {
                    self.arm_listener();
                    return Err(error);
                }
                Knock::Accepted(fd, peer) => match self.insert(fd, State::default()) {
                    Ok(id) => accepted.push(Accepted { id, peer }),
                    Err(errno) => {
                        self.rest();
                        return Err(AcceptError::Exhausted(errno));
                    }
                },
            }
        }
        Ok(())
    }

    /// Takes over a connected socket that was made elsewhere; it must be non-blocking.
    pub fn adopt(&mut self, fd: OwnedFd) -> Result<SocketId, Errno> {
        self.insert(fd, State::default())
    }

    fn insert(&mut self, fd: OwnedFd, state: State) -> Result<SocketId, Errno> {
        let connecting = state.phase == Phase::Connecting;
        let armed = Armed::wanting(!connecting, connecting, state.phase);
        let id = self.slots.insert(fd, State { armed, ..state });
        let Some((fd, _)) = self.slots.get(id) else { return Ok(id) };
        // The kernel may have no memory for it, or the user no watch left (max_user_watches).
        if let Err(errno) =
            epoll::add(&self.epoll, fd, epoll::EventData::new_u64(id.token()), flags_of(armed))
        {
            self.slots.remove(id);
            return Err(errno);
        }
        Ok(id)
    }
}

/// Going out.
impl Reactor {
    /// Begins a connection; [`Event::Connected`] or [`Event::ConnectFailed`] follows.
    pub fn connect(&mut self, to: SocketAddr, options: &ConnectOptions) -> Result<SocketId, ConnectError> {
        let fd = crate::connect::begin(to, options)?;
        self.insert(fd, State { phase: Phase::Connecting, ..State::default() })
            .map_err(ConnectError::Exhausted)
    }

    pub(super) fn finish_connecting(&mut self, id: SocketId) -> Option<Event> {
        let (fd, _, state) = self.slots.get_mut(id)?;
        match sockopt::socket_error(fd) {
            Ok(Ok(())) => {
                state.phase = Phase::Open;
                self.arm(id, None);
                Some(Event::Connected(id))
            }
            Ok(Err(errno)) | Err(errno) => {
                self.close(id);
                Some(Event::ConnectFailed(id, errno))
            }
        }
    }
}
