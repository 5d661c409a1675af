//! The binary as a person meets it: what it prints, where, and how it ends.

mod configuration;
mod keys;
mod run;
mod usage;
