//! What is remembered of conversations so that a message costs no look-up.
//!
//! Owns the cap. Deliberately knows no SQL: whoever changes a row changes this too, and after a roll-back everything is forgotten.

use hashbrown::HashMap;
use model::{ConversationId, ConversationKind, HashKey};

/// A conversation as its rows have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    /// What it is called inside the file.
    pub number: i64,
    pub kind: ConversationKind,
    pub head: u64,
    pub trimmed: u64,
}

/// The conversations used last: a generation that fills and the one before it, which is dropped as a whole. So it takes no list
/// of uses, and at most `2 * half` are kept.
pub(crate) struct Residents {
    young: HashMap<ConversationId, Resident, HashKey>,
    old: HashMap<ConversationId, Resident, HashKey>,
    half: usize,
}

impl Residents {
    pub(crate) fn new(key: HashKey, most: usize) -> Self {
        let map = || HashMap::with_hasher(key);
        Residents { young: map(), old: map(), half: most.div_ceil(2).max(1) }
    }

    pub(crate) fn get(&mut self, id: ConversationId) -> Option<&mut Resident> {
        if !self.young.contains_key(&id) {
            let resident = self.old.remove(&id)?;
            self.insert(id, resident);
        }
        self.young.get_mut(&id)
    }

    pub(crate) fn insert(&mut self, id: ConversationId, resident: Resident) {
        if self.young.len() >= self.half {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(id, resident);
    }

    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}
