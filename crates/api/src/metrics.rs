//! `GET /metrics`, in the text format of Prometheus, version 0.0.4.
//!
//! Owns the names of everything that is not counted by a shard, and the one way of writing a sample.

use std::sync::atomic::AtomicU64;

use axum::http::StatusCode;

/// What the HTTP side counts of itself.
#[derive(Debug, Default)]
pub struct Counters {
    pub connections: AtomicU64,
    pub connections_refused: AtomicU64,
    /// By the first digit of the status, from 1 to 5.
    answered: [AtomicU64; 5],
}

impl Counters {
    /// The counter of answers with this status.
    pub fn answered(&self, status: StatusCode) -> &AtomicU64 {
        &self.answered[usize::from(status.as_u16() / 100).clamp(1, 5) - 1]
    }
}

/// `GET /metrics`
pub async fn show() -> &'static str {
    ""
}
