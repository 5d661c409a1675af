//! The contract every engine keeps.

use std::fmt;

use model::DeviceKey;

use crate::{Reply, Request};

/// The store can no longer be trusted to keep what it acknowledges (a failed fsync, a damaged file). Nothing of the batch was
/// promised to anybody; the process must stop and recover. It is never retried.
#[derive(Debug)]
pub struct Fatal(pub Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store failed and nothing more may be acknowledged")
    }
}

impl std::error::Error for Fatal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// A durable store. One thread owns it.
pub trait Engine: Send {
    /// Carries out the requests in order, in one transaction, and makes them durable before it returns: one reply a request, in
    /// the same order. A batch that only reads makes nothing durable and waits for no disk.
    ///
    /// When the disk is full, nothing of the batch is kept: every write is answered [`Reply::ReadOnly`], every read from the
    /// state before the batch. One bad request never harms another.
    fn commit(&mut self, batch: &[Request], replies: &mut Vec<Reply>) -> Result<(), Fatal>;

    /// Called when nothing has been asked for a moment after a commit: time for what need not hold anybody up.
    fn rest(&mut self) -> Result<(), Fatal> {
        Ok(())
    }

    /// Names every known device with the number of conversations it is marked pending in. Called once, at start, after
    /// marks of devices that are not behind have been taken away.
    fn devices(&mut self, each: &mut dyn FnMut(DeviceKey, u32)) -> Result<(), Fatal>;
}
