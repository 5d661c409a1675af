//! Whole shards at the protocol's boundary: bytes of clients go in and bytes for clients come out, as `docs/protocol.md` says.

mod client;
mod names;
mod script;
mod wire;
mod world;

mod closes;
mod errors;
mod faults;
mod floods;
mod memory;
mod permissions;
mod pushes;
mod splits;
mod upgrades;
mod verbs;
