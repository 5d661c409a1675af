//! The other side of the wire: a fleet of clients on the project's own reactor, the load generator, and the benchmarks.
//!
//! Owns the client's session as bytes in, bytes out (`client`), thousands of them on one thread (`fleet`), who they are (`accounts`), what
//! a load test does with them (`run`), and what a benchmark needs of a server: starting one, tokens for it, conversations (`server`).
//! Beside it, what the server's machine did meanwhile (`sample`), and the page that shows both (`report`). It speaks the protocol and
//! deliberately knows nothing of the server's inside.

mod accounts;
mod client;
mod fleet;
mod latency;
pub mod report;
pub mod run;
pub mod sample;
mod server;
mod table;

pub use accounts::{Accounts, TokensError, TokensFile};
pub use client::{Client, Ending, SOCKET_PATH, Said, Stage};
pub use fleet::{Context, Fleet, FleetOptions, PER_SOURCE, Scenario, Tokens};
pub use latency::Latencies;
pub use server::{Minter, Server, ServerOptions, resident_bytes};
