//! A run of the load generator: what `throng load` does.
//!
//! An open loop: what is due was fixed before, and a latency counts from then. Owns the scenarios, the steps, the outcomes, the checks of
//! what the server promised, and what is written about all that. It speaks the protocol and deliberately knows nothing of the server's
//! inside; where tokens come from, and how somebody asks it to stop, is the caller's.
//!
//! ```text
//! plan ──▶ schedule ──▶ worker (a thread: fleet, pairs) ──▶ desk ──▶ conductor ──▶ csv, view, summary
//! ```

mod conduct;
mod plan;
mod schedule;

mod address;
mod desk;
mod probe;
mod tables;
mod worker;

mod chance;
mod pair;
mod payload;

mod csv;
mod judge;
mod summary;
mod tally;
mod threshold;
mod view;

pub use address::{Address, AddressError};
pub use chance::Chance;
pub use conduct::{Outputs, RunError, conduct};
pub use csv::Ended;
pub use payload::{SIZE_MIN, Sizes};
pub use plan::{Kind, Plan, PlanError};
pub use summary::Summary;
pub use threshold::{Threshold, ThresholdError};
pub use worker::LATE_MAX;
