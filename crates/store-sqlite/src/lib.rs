//! The store on SQLite: a file anyone can open, with every page checked.
//!
//! Owns the data directory, the schema and its versions, and what is done when the disk refuses. Deliberately knows
//! nothing of the rules: it carries out requests of `store` and answers them.

mod checksum;
mod directory;
mod engine;
mod execute;
mod gauges;
mod log_buffer;
mod moves;
mod open;
mod read;
mod residents;
mod rows;
mod schema;
mod statements;
mod trouble;
mod vfs;

pub use engine::{Options, SqliteStore};
pub use gauges::{Gauges, Numbers};
pub use open::OpenError;
