//! Runs of the simulator, and whether its checkers notice what is wrong.

mod mistakes;
mod route;
mod rules;
mod seeds;
