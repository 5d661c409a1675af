//! What throng answers over plain HTTP: conversations over REST, health, metrics, the OpenAPI description, and with
//! `--dev` a page to try it.
//!
//! Owns routes, the strict reading of requests, problems (RFC 9457) and everything about HTTP connections: how many,
//! how slow, how they end. A request becomes the same input that a socket's command becomes, and enters through
//! [`node::Handle::request`]. Deliberately knows no rule and no engine, and never sees how a connection was accepted:
//! the shards hand over the sockets that turned out not to be WebSockets.

mod serve;

mod stream;

mod state;

mod routes;

mod guard;

mod caller;

mod body;

mod problem;

mod conversations;

mod health;

mod metrics;

mod dev;

pub use serve::serve;
pub use state::{Dev, Limits, State};
