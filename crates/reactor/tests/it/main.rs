//! Real sockets on the loopback.

mod crowd;
mod descriptors;
mod driver;
mod endings;
mod handover;
mod output;
mod reading;
mod waiting;
