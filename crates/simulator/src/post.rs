//! Mail between shards: first-in first-out for each ordered pair, and nothing is promised between pairs.

use std::collections::VecDeque;

use domain::Effect;
use model::{Mono, ShardId};

/// What is under way between the shards of one process.
#[derive(Debug)]
pub struct Post {
    shards: usize,
    pairs: Vec<Pair>,
}

#[derive(Debug, Default)]
struct Pair {
    queue: VecDeque<Effect>,
    held_until: Mono,
}

impl Post {
    /// Nothing is under way.
    pub fn new(shards: u16) -> Self {
        let shards = usize::from(shards);
        Post { shards, pairs: (0..shards * shards).map(|_| Pair::default()).collect() }
    }

    fn pair(&mut self, from: ShardId, to: ShardId) -> &mut Pair {
        &mut self.pairs[usize::from(from.0) * self.shards + usize::from(to.0)]
    }

    /// How many shards there are.
    pub fn shards(&self) -> u16 {
        self.shards as u16
    }

    /// The process is gone, and everything under way.
    pub fn clear(&mut self) {
        self.pairs.iter_mut().for_each(|pair| *pair = Pair::default());
    }

    /// Sends.
    pub fn push(&mut self, from: ShardId, to: ShardId, effect: Effect) {
        self.pair(from, to).queue.push_back(effect);
    }

    /// The next piece from one shard to another.
    pub fn pop(&mut self, from: ShardId, to: ShardId) -> Option<Effect> {
        self.pair(from, to).queue.pop_front()
    }

    /// How many pieces could arrive now.
    pub fn waiting(&mut self, from: ShardId, to: ShardId, now: Mono) -> usize {
        let pair = self.pair(from, to);
        if pair.held_until > now { 0 } else { pair.queue.len() }
    }

    /// Holds back what is under way from one shard to another.
    pub fn hold(&mut self, from: ShardId, to: ShardId, until: Mono) {
        let pair = self.pair(from, to);
        pair.held_until = pair.held_until.max(until);
    }

    /// Holds nothing back any more.
    pub fn let_through(&mut self) {
        self.pairs.iter_mut().for_each(|pair| pair.held_until = Mono(0));
    }

    /// Pieces under way in all.
    pub fn len(&self) -> usize {
        self.pairs.iter().map(|pair| pair.queue.len()).sum()
    }
}
