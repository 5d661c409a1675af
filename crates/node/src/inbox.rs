//! What reaches a shard from outside the sockets and the fabric: REST requests, draining, probes. Rare, so a bounded
//! channel and a wake-up each time will do.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use domain::{Answer, Input, Refusal};
use model::{DeviceKey, Mono, Span};
use reactor::Waker;
use tokio::sync::oneshot;

/// Requests that may wait for one shard.
const INBOX_MAX: usize = 4_096;

/// One thing from outside.
pub enum Command {
    /// A request; it is answered with this ticket.
    Request { ticket: u64, input: Box<Input>, answer: oneshot::Sender<Result<Answer, Refusal>> },
    /// Devices of this shard's users were imported; nothing is pending for them.
    Know { devices: Vec<DeviceKey> },
    /// Whether the shard turns; it publishes its numbers before it answers.
    Probe { answer: oneshot::Sender<()> },
    /// Close every connection, spread over this time, and say when all are gone.
    Drain { within: Span, done: oneshot::Sender<()> },
    /// End the thread.
    Stop,
}

/// The sending side.
#[derive(Clone)]
pub struct Inbox {
    sender: SyncSender<Command>,
    waker: Waker,
}

/// Makes both sides.
pub fn inbox(waker: Waker) -> (Inbox, Receiver<Command>) {
    let (sender, receiver) = sync_channel(INBOX_MAX);
    (Inbox { sender, waker }, receiver)
}

impl Inbox {
    /// Gives the command back when the shard does not keep up, or has ended.
    pub fn send(&self, command: Command) -> Result<(), Command> {
        self.sender.try_send(command).map_err(|error| match error {
            std::sync::mpsc::TrySendError::Full(command)
            | std::sync::mpsc::TrySendError::Disconnected(command) => command,
        })?;
        self.waker.wake();
        Ok(())
    }
}

/// A drain that goes on.
pub struct Draining {
    pub until: Mono,
    pub done: Option<oneshot::Sender<()>>,
}
