//! Whole servers by function calls from one seed: shards, mail between them, a store, clients that speak real bytes, and everything that
//! can go wrong between them. The same seed gives the same run.
//!
//! Owns the world, the clients in it and the checkers of the design's invariants. There is no thread, no clock and no socket
//! in it: time is a number that grows, and what happens next is drawn from the seed.

mod random;
mod trace;
mod violation;

mod names;
mod words;

mod coverage;
mod plan;

mod device;
mod disk;
mod post;
mod tamper;
mod tokens;
mod wires;

mod client;
mod link;
mod office;
mod oracle;
mod server;
mod strangers;

pub mod rules;

mod calm;
mod route;
mod storing;
mod world;

pub use coverage::{Coverage, Seen};
pub use plan::Plan;
pub use route::route_of_a_message;
pub use tamper::Mistake;
pub use trace::Listener;
pub use violation::Violation;

use random::Random;
use tamper::Tamper;
use trace::Trace;
use world::World;

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What was broken, if something was.
    pub violation: Option<Violation>,
    /// What the trace amounts to.
    pub hash: u64,
    /// How many lines it has.
    pub lines: u64,
    /// What was counted.
    pub coverage: Coverage,
}

/// Runs a seed.
pub fn run(seed: u64, mistake: Mistake, listener: Option<Listener>) -> Outcome {
    domain::fault::keep_quiet();
    let mut random = Random::new(seed);
    let mut plan = Plan::draw(&mut random);
    mistake.arrange(&mut plan);
    let mut trace = Trace::new(listener);
    trace.line(format_args!("seed {seed}: {plan:?}"));
    let steps = plan.steps;
    let mut world = World::new(plan, random, trace, Tamper::new(mistake));
    let checked = (0..steps).try_for_each(|step| world.step(step)).and_then(|()| world.come_to_rest());
    let violation = checked.err();
    if let Some(violation) = &violation {
        world.trace.line(format_args!("{} violated: {violation}", world.now.mono.0));
    }
    Outcome { violation, hash: world.trace.hash(), lines: world.trace.lines(), coverage: world.coverage }
}
