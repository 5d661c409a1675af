//! How much was made so far.

use std::time::Duration;

use store::Imported;

/// Users and conversations that were made, and that were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Made {
    /// Users made.
    pub users: u64,
    /// Users that were there.
    pub users_there: u64,
    /// Phone numbers that belong to somebody else.
    pub phones_taken: u64,
    /// Conversations made.
    pub conversations: u64,
    /// Conversations that were there.
    pub conversations_there: u64,
}

impl Made {
    /// Counts one more slice.
    pub fn add(&mut self, imported: &Imported) {
        self.users += imported.users;
        self.users_there += imported.users_there;
        self.phones_taken += imported.phones_taken;
        self.conversations += imported.conversations;
        self.conversations_there += imported.conversations_there;
    }

    /// Users and conversations that have had their turn.
    pub fn done(&self) -> u64 {
        self.users + self.users_there + self.phones_taken + self.conversations + self.conversations_there
    }

    /// What a person is told at the end.
    pub fn told(&self, within: Duration) -> String {
        let Made { users, users_there, conversations, conversations_there, .. } = self;
        let seconds = within.as_secs_f64();
        format!(
            "made {users} users ({users_there} were there already) and {conversations} conversations \
             ({conversations_there} were there already) in {seconds:.2} s, {:.0} a second\n",
            self.done() as f64 / seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_counted_together() {
        let slice = Imported {
            users: 1,
            users_there: 2,
            phones_taken: 3,
            devices: Vec::new(),
            conversations: 4,
            conversations_there: 5,
        };
        let mut made = Made::default();
        made.add(&slice);
        made.add(&slice);
        assert_eq!(made.done(), 30);
        let told = made.told(Duration::from_millis(500));
        assert_eq!(
            told,
            "made 2 users (4 were there already) and 8 conversations (10 were there already) in 0.50 s, 60 a second\n"
        );
    }
}
