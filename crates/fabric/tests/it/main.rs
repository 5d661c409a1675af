//! What the fabric promises, shown through its public door.
#![allow(unexpected_cfgs, reason = "`--cfg loom` is set by hand when the memory orderings are checked")]

#[cfg(not(loom))]
mod bounds;
#[cfg(not(loom))]
mod dice;
#[cfg(not(loom))]
mod freed;
#[cfg(loom)]
mod model;
#[cfg(not(loom))]
mod threads;
