//! Sockets under epoll: one reactor per thread, for the server's connections and the load generator's alike.
//!
//! Owns the epoll set, the listener, the table of sockets, one receive buffer, the output that a socket did not take
//! yet, and the descriptor a thread needs when it has no other left. Deliberately knows no message, no user, no
//! WebSocket: bytes come up and bytes go down.
//!
//! One turn of a caller: [`Reactor::wait`], then [`Reactor::next_event`] until it says `None`, answering each event with
//! [`Reactor::accept_some`], [`Reactor::read`] or [`Reactor::flush`], and [`Reactor::send`] for whatever there is to say.
//!
//! **Level-triggered.** An idle socket costs the same either way: one registration and no wake-up. Level-triggered
//! needs one `recv` per event (edge-triggered needs a second one that says `EAGAIN`), and a connection with more bytes
//! than its turn allows is reported again by the kernel, behind the others, so no list of half-read sockets is kept
//! here. Writability is asked for only while output waits. The waker's eventfd alone is edge-triggered, so that it
//! need not be read.

mod connect;
mod descriptors;
mod events;
mod handover;
mod listener;
mod outbox;
mod reactor;
mod slots;
mod waker;

pub use connect::{ConnectError, ConnectOptions};
pub use descriptors::{
    DescriptorLimit, UnshareError, can_unshare_files, compare_descriptor_tables, raise_descriptor_limit,
    unshare_files,
};
pub use events::Event;
pub use handover::{HandoverError, Received, handover_pair, recv_fd, send_fd};
pub use listener::{AcceptError, Accepted, BindError, ListenOptions, Listener, free_address};
pub use reactor::{Options, Reactor, Read, SendError, Sent};
pub use slots::SocketId;
pub use waker::Waker;
