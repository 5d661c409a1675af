//! The HTTP side in front of a real node on a real socket, spoken to by a client written here.

mod bodies;
mod client;
mod connections;
mod conversations;
mod dev;
mod framing;
mod log;
mod metrics;
mod origins;
mod readiness;
mod server;
mod tokens;
