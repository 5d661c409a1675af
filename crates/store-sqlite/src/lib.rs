//! The store on SQLite: a file anyone can open, with every page checked.
//!
//! Owns the data directory, the schema and its versions, and what is done when the disk refuses. Deliberately knows
//! nothing of the rules: it carries out requests of `store` and answers them.

mod backup;
mod check;
mod checkpoint;
mod checksum;
mod clean;
mod directory;
mod engine;
mod execute;
mod gauges;
mod import;
mod log_buffer;
mod log_check;
mod mark;
mod moves;
mod open;
mod page_cache;
#[cfg(test)]
mod power;
mod read;
mod residents;
mod rows;
mod schema;
mod statements;
mod trouble;
mod vfs;

pub use backup::{BackupError, Progress, backup};
pub use check::{CheckReport, FINDINGS_MAX, check};
pub use engine::{Options, SqliteStore};
pub use gauges::{Gauges, Numbers};
pub use open::OpenError;
