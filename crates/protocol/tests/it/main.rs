//! The wire, from outside: bytes written by hand against what is read from them, and the other way round.

mod bytes;
mod random;

mod allocations;
mod appendix_a;
mod commands;
mod documented;
mod framing;
mod mutations;
mod outgoing;
mod round_trips;
mod strictness;
mod tables;
