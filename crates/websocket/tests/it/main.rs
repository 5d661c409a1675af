//! The wire format from outside: tables from the RFC and from the attacks, and random streams against a naive decoder.

mod boundaries;
mod client;
mod random;
mod receive;
mod reference;
mod request;
mod rfc;
mod send;
mod splits;
mod streams;
