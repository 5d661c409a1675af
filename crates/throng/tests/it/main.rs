//! The binary as a person meets it: what it prints, where, and how it ends; and as clients meet it, over the wire.

mod chance;
mod client;
mod configuration;
mod database;
mod ending;
mod keys;
mod operating;
mod refusing;
mod run;
mod server;
mod serving;
mod traffic;
mod usage;
