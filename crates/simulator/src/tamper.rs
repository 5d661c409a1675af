//! Mistakes made on purpose, to see whether the checkers notice.

use domain::Effect;
use shard::Ask;

use crate::random::Random;

/// What is made wrong in a run; nothing, normally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mistake {
    /// Nothing.
    #[default]
    None,
}

/// Makes mistakes.
#[derive(Debug, Default)]
pub struct Tamper {
    mistake: Mistake,
}

impl Tamper {
    /// Makes this one.
    pub fn new(mistake: Mistake) -> Self {
        Tamper { mistake }
    }

    /// A piece of mail on its way.
    pub fn mail(&mut self, effect: Effect, _random: &mut Random, send: &mut dyn FnMut(Effect)) {
        match self.mistake {
            Mistake::None => send(effect),
        }
    }

    /// A request on its way to the store.
    pub fn ask(&mut self, ask: Ask, _random: &mut Random) -> Ask {
        ask
    }
}
