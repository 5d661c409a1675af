//! One thread's sockets: the table, the epoll set, and the wait.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use model::limits::TURN_BYTES_PER_CONNECTION;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::listener::Door;
use crate::outbox::Outboxes;
use crate::slots::{Armed, NONE, Phase, Reading, Slots};
use crate::{Event, SocketId, Waker};

mod endings;
mod openings;
mod traffic;

pub use traffic::{Read, SendError, Sent};

const LISTENER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Events taken from the kernel at once. What is left over is taken by the next wait.
const EVENTS_MAX: usize = 512;
/// Longest wait the kernel is asked for; nothing is due more rarely than this matters.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// How a reactor behaves.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// From [`Reactor::close_after_flush`] to closing, whatever the peer does.
    pub linger: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { linger: Duration::from_secs(2) }
    }
}

/// One epoll set with its sockets. It stays in the thread that made it: with a descriptor table of its own, its
/// descriptors mean nothing elsewhere.
pub struct Reactor {
    epoll: OwnedFd,
    waker: Waker,
    door: Option<Door>,
    slots: Slots,
    outboxes: Outboxes,
    events: Vec<epoll::Event>,
    next: usize,
    /// A socket whose writability was reported and whose readability comes next.
    then_readable: Option<(SocketId, epoll::EventFlags)>,
    /// Sockets of which a read may have left something, and how many of them have their turn before the next wait.
    again: VecDeque<SocketId>,
    again_due: usize,
    buffer: Box<[u8]>,
    /// Lingering sockets and when they close, in that order.
    lingering: VecDeque<(Instant, SocketId)>,
    options: Options,
    stays_in_its_thread: PhantomData<*const ()>,
}

impl Reactor {
    /// A reactor without sockets, which `waker` wakes.
    pub fn new(waker: Waker, options: Options) -> io::Result<Reactor> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, waker.fd(), epoll::EventData::new_u64(WAKER), flags)?;
        Ok(Reactor {
            epoll,
            waker,
            door: None,
            slots: Slots::new(),
            outboxes: Outboxes::default(),
            events: Vec::with_capacity(EVENTS_MAX),
            next: 0,
            then_readable: None,
            again: VecDeque::new(),
            again_due: 0,
            buffer: vec![0; TURN_BYTES_PER_CONNECTION].into_boxed_slice(),
            lingering: VecDeque::new(),
            options,
            stays_in_its_thread: PhantomData,
        })
    }

    /// The handle that ends this reactor's waits.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Open sockets, lingering ones included.
    pub fn sockets(&self) -> usize {
        self.slots.len()
    }

    /// The socket that has a slot now, lingering ones included.
    pub fn tenant(&self, slot: u32) -> Option<SocketId> {
        self.slots.tenant(slot)
    }

    /// Bytes that wait for sockets, all together.
    pub fn queued_total(&self) -> usize {
        self.outboxes.total_bytes()
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reactor")
            .field("listening", &self.listening())
            .field("sockets", &self.sockets())
            .field("queued_total", &self.queued_total())
            .finish_non_exhaustive()
    }
}

/// Waiting.
impl Reactor {
    /// Waits until something happens or `timeout` is over (`None`: for ever), and says how many events there are to
    /// pull. Events of the last wait that were not pulled are still there, and then it does not wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        if self.next < self.events.len() || self.then_readable.is_some() || self.again_due > 0 {
            return Ok(self.events.len() - self.next + self.again_due);
        }
        self.events.clear();
        self.next = 0;
        let timeout = if self.again.is_empty() { timeout } else { Some(Duration::ZERO) };
        let timeout = self.own_deadline(timeout).map(|span| {
            let span = span.min(WAIT_MAX);
            Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) }
        });
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.end_what_is_due();
        self.again_due = self.again.len();
        Ok(self.events.len() + self.again_due)
    }

    /// The caller's timeout, or less when a lingering socket or a resting listener is due before.
    fn own_deadline(&self, timeout: Option<Duration>) -> Option<Duration> {
        let linger = self.lingering.front().map(|(at, _)| *at);
        let rest = self.door.as_ref().and_then(|door| door.resting_until);
        let Some(due) = linger.into_iter().chain(rest).min() else { return timeout };
        let span = due.saturating_duration_since(Instant::now());
        Some(timeout.map_or(span, |timeout| timeout.min(span)))
    }

    fn end_what_is_due(&mut self) {
        let resting = self.door.as_ref().and_then(|door| door.resting_until);
        if self.lingering.is_empty() && resting.is_none() {
            return;
        }
        let now = Instant::now();
        while let Some(&(at, id)) = self.lingering.front()
            && at <= now
        {
            self.lingering.pop_front();
            self.close(id);
        }
        if resting.is_some_and(|until| until <= now) {
            if let Some(door) = &mut self.door {
                door.resting_until = None;
            }
            self.arm_listener();
        }
    }

    /// The next event, or `None` when it is time to wait again.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some((id, flags)) = self.then_readable.take()
                && let Some(event) = self.input_event(id, flags)
            {
                return Some(event);
            }
            let event = if let Some(epoll::Event { flags, data, .. }) = self.events.get(self.next).copied() {
                self.next += 1;
                match data.u64() {
                    WAKER => Some(Event::Woken),
                    LISTENER => Some(Event::Accept),
                    token => self.socket_event(SocketId::from_token(token), flags),
                }
            } else if self.again_due > 0 {
                self.again_due -= 1;
                self.again.pop_front().and_then(|id| self.again_event(id))
            } else {
                return None;
            };
            if event.is_some() {
                return event;
            }
        }
    }

    fn socket_event(&mut self, id: SocketId, flags: epoll::EventFlags) -> Option<Event> {
        let (_, slot) = self.slots.get(id)?;
        match slot.state.phase {
            Phase::Connecting => return self.finish_connecting(id),
            Phase::Lingering => {
                self.attend_lingering(id, flags);
                return None;
            }
            Phase::Open => {}
        }
        if flags.contains(epoll::EventFlags::OUT) && slot.outbox != NONE {
            self.then_readable =
                Some((id, flags - epoll::EventFlags::OUT)).filter(|(_, flags)| !flags.is_empty());
            return Some(Event::Writable(id));
        }
        self.input_event(id, flags)
    }

    fn input_event(&mut self, id: SocketId, flags: epoll::EventFlags) -> Option<Event> {
        let gone = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        let (_, _, state) = self.slots.get_mut(id)?;
        state.ending |= gone || flags.contains(epoll::EventFlags::RDHUP);
        if state.reading == Reading::Again {
            return None;
        }
        if matches!(state.reading, Reading::Awaited | Reading::Ready) {
            state.reading = Reading::Ready;
            return Some(Event::Readable(id));
        }
        let tell = gone && state.reading == Reading::Paused;
        // Errors and hang-ups cannot be masked, so a socket nobody reads from leaves the set.
        self.arm(id, gone.then_some(Armed::Absent));
        tell.then_some(Event::HungUp(id))
    }

    /// The turn of a socket that was read from before and may have more.
    fn again_event(&mut self, id: SocketId) -> Option<Event> {
        let (_, _, state) = self.slots.get_mut(id)?;
        let due = state.phase == Phase::Open && state.reading == Reading::Again;
        due.then(|| {
            state.reading = Reading::Ready;
            Event::Readable(id)
        })
    }

    /// Tells epoll what is wanted of a socket, if that has changed.
    fn arm(&mut self, id: SocketId, wish: Option<Armed>) {
        let Some((fd, outbox, state)) = self.slots.get_mut(id) else { return };
        let connecting = state.phase == Phase::Connecting;
        let writes = *outbox != NONE || connecting;
        let reads =
            matches!(state.reading, Reading::Awaited | Reading::Ready | Reading::Again) && !connecting;
        let wish = wish.unwrap_or(Armed::wanting(reads, writes, state.phase));
        let was = std::mem::replace(&mut state.armed, wish);
        let flags = flags_of(wish);
        let data = epoll::EventData::new_u64(id.token());
        let told = match (was, wish) {
            (was, wish) if was == wish => Ok(()),
            (Armed::Absent, _) => epoll::add(&self.epoll, fd, data, flags),
            (_, Armed::Absent) => epoll::delete(&self.epoll, fd),
            _ => epoll::modify(&self.epoll, fd, data, flags),
        };
        debug_assert!(told.is_ok(), "the set and the table disagree: {told:?}");
    }
}

fn flags_of(armed: Armed) -> epoll::EventFlags {
    use epoll::EventFlags as Flags;
    match armed {
        Armed::Absent | Armed::Nothing => Flags::empty(),
        // The end of what comes is asked for by name: bytes and end may be one event, and the read gives the bytes only.
        Armed::ReadNew => Flags::IN | Flags::RDHUP | Flags::ET,
        Armed::Read => Flags::IN,
        Armed::Write => Flags::OUT,
        Armed::ReadWrite => Flags::IN | Flags::OUT,
    }
}
