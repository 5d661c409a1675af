//! How the rest of the process reaches the shards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::{Answer, Input, Origin, Refusal};
use model::{HashKey, ShardId};
use tokio::sync::oneshot;

use crate::gauges::{ShardGauges, StoreGauges};
use crate::import::StoreDoor;
use crate::inbox::{Command, Inbox};

/// Requests from outside the sockets, and the numbers of all threads. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub inboxes: Vec<Inbox>,
    pub shards: Vec<Arc<ShardGauges>>,
    pub fabric: Vec<Arc<fabric::Gauges>>,
    pub store: Arc<StoreGauges>,
    pub store_door: StoreDoor,
    pub hash_key: HashKey,
    pub tickets: AtomicU64,
}

impl Handle {
    /// Puts an input to the rules, as the sockets do, and waits for the answer. The input is made with the origin it must carry.
    pub async fn request(&self, make: impl FnOnce(Origin) -> Input) -> Result<Answer, Refusal> {
        let ticket = self.inner.tickets.fetch_add(1, Ordering::Relaxed);
        let shards = self.inner.inboxes.len() as u16;
        // Any will do: it hands the input to its owner.
        let shard = ShardId((ticket % u64::from(shards)) as u16);
        let input = make(Origin::Outside { shard, ticket });
        let (answer, answered) = oneshot::channel();
        let command = Command::Request { ticket, input: Box::new(input), answer };
        if self.inner.inboxes[usize::from(shard.0)].send(command).is_err() {
            return Err(Refusal::Overloaded("too many requests are waiting"));
        }
        answered.await.unwrap_or(Err(Refusal::Overloaded("the server is stopping")))
    }

    /// Whether every shard makes a turn within this time. Those that do have published their numbers.
    pub async fn shards_turn(&self, within: Duration) -> bool {
        let mut answers = Vec::new();
        for inbox in &self.inner.inboxes {
            let (answer, answered) = oneshot::channel();
            if inbox.send(Command::Probe { answer }).is_err() {
                return false;
            }
            answers.push(answered);
        }
        let all = async {
            for answered in answers {
                if answered.await.is_err() {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(within, all).await.unwrap_or(false)
    }

    /// Whether the disk takes writes, as far as the last one told.
    pub fn store_writable(&self) -> bool {
        self.inner.store.read_only.load(Ordering::Relaxed) == 0
    }

    /// Every shard's counters, as last published: see [`Handle::shards_turn`].
    pub fn shards(&self) -> &[Arc<ShardGauges>] {
        &self.inner.shards
    }

    /// Every port's gauges: those of the shards, then that of the store thread.
    pub fn fabric(&self) -> &[Arc<fabric::Gauges>] {
        &self.inner.fabric
    }

    /// The store thread's numbers.
    pub fn store(&self) -> &StoreGauges {
        &self.inner.store
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> u16 {
        self.inner.inboxes.len() as u16
    }
}
