//! Accounts that come from outside, between the batches of the shards.
//!
//! Owns the store thread's side door: bounded, one request a batch, so that traffic goes on whatever comes through it. Whoever uses it makes
//! each request short.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::Thread;
use std::{fmt, time::Duration};

use model::{DeviceKey, partition_of_user};
use shard::owner_of;
use store::{Imported, Reply, Request};
use tokio::sync::oneshot;

use crate::handle::Handle;
use crate::inbox::Command;
use crate::start::send_surely;

/// Requests that may wait at the door.
const WAITING_MAX: usize = 4;
/// How long to wait before a full door is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(5);

/// A request from outside, and where its answer goes.
pub struct Knock {
    pub request: Request,
    pub answer: oneshot::Sender<Reply>,
}

/// The store thread's side.
pub type Knocks = Receiver<Knock>;

/// The outer side.
pub struct StoreDoor {
    knock: SyncSender<Knock>,
    store: Thread,
}

/// Makes both sides; the outer one is [`StoreDoor::new`] of the first, once the thread is there.
pub fn store_door() -> (SyncSender<Knock>, Knocks) {
    sync_channel(WAITING_MAX)
}

impl StoreDoor {
    pub fn new(knock: SyncSender<Knock>, store: Thread) -> StoreDoor {
        StoreDoor { knock, store }
    }

    async fn ask(&self, request: Request) -> Result<Reply, ImportError> {
        let (answer, answered) = oneshot::channel();
        let mut knock = Knock { request, answer };
        while let Err(refused) = self.knock.try_send(knock) {
            match refused {
                TrySendError::Full(back) => knock = back,
                TrySendError::Disconnected(_) => return Err(ImportError::Stopping),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        self.store.unpark();
        answered.await.map_err(|_| ImportError::Stopping)
    }
}

/// Why accounts were not imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportError {
    /// The disk takes no more for now.
    ReadOnly,
    /// The server is stopping.
    Stopping,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImportError::ReadOnly => "the disk is full",
            ImportError::Stopping => "the server is stopping",
        })
    }
}

impl std::error::Error for ImportError {}

impl Handle {
    /// Carries out a [`Request::Import`] and makes the owners of the users know the devices that came to be.
    ///
    /// # Errors
    /// When nothing of it was done.
    pub async fn import(&self, request: Request) -> Result<Imported, ImportError> {
        debug_assert!(matches!(request, Request::Import { .. }));
        match self.inner.store_door.ask(request).await? {
            Reply::Imported(imported) => {
                self.know(&imported.devices).await;
                Ok(imported)
            }
            _ => Err(ImportError::ReadOnly),
        }
    }

    /// A device that connects before its owner knows it is looked up in the store, as any new one.
    async fn know(&self, devices: &[DeviceKey]) {
        let shards = self.shard_count();
        let mut of_shards = vec![Vec::new(); usize::from(shards)];
        for device in devices {
            let partition = partition_of_user(&self.inner.hash_key, device.user);
            of_shards[usize::from(owner_of(partition, shards).0)].push(*device);
        }
        for (inbox, devices) in self.inner.inboxes.iter().zip(of_shards) {
            if !devices.is_empty() {
                send_surely(inbox, Command::Know { devices }).await;
            }
        }
    }
}
