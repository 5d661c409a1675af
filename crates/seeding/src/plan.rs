//! What is made, in bounded slices.

use std::fmt;

use model::limits::GROUP_MEMBERS_MAX;
use model::{ConversationKind, DeviceKey, Wall};
use store::{ImportedConversation, ImportedUser, Request};

use crate::accounts::{DEVICE, Seed, USERS_MAX, phone};

/// How much is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Users, each with a phone number and a device.
    pub users: u64,
    /// Direct conversations: number `c` is of the users `2c` and `2c + 1`.
    pub conversations: u64,
    /// Groups: number `g` is of the users from `g · group_size` on, counted in a circle.
    pub groups: u64,
    /// Members of each group.
    pub group_size: u64,
    /// What all ids follow from.
    pub seed: u64,
}

/// Why it cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impossible {
    /// More users than phone numbers.
    Users {
        /// How many are wanted.
        wanted: u64,
    },
    /// A direct conversation needs two users of its own.
    Conversations {
        /// How many are wanted.
        wanted: u64,
        /// Of so many users.
        users: u64,
    },
    /// More groups than anybody can have meant.
    Groups {
        /// How many are wanted.
        wanted: u64,
    },
    /// A group has two members or more, up to the server's limit.
    GroupSize {
        /// How many members are wanted.
        wanted: u64,
    },
    /// A group has no member twice.
    Members {
        /// How many members are wanted.
        group_size: u64,
        /// Of so many users.
        users: u64,
    },
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Impossible::Users { wanted } => {
                write!(f, "--users {wanted}: there are phone numbers for {USERS_MAX} users at most")
            }
            Impossible::Conversations { wanted, users } => write!(
                f,
                "--conversations {wanted}: each needs two users of its own, so {users} users have {} at most",
                users / 2
            ),
            Impossible::Groups { wanted } => {
                write!(f, "--groups {wanted}: there may be {USERS_MAX} at most")
            }
            Impossible::GroupSize { wanted } => {
                write!(f, "--group-size {wanted}: a group has 2 to {GROUP_MEMBERS_MAX} members")
            }
            Impossible::Members { group_size, users } => {
                write!(f, "--group-size {group_size}: there are only {users} users to be in a group")
            }
        }
    }
}

impl std::error::Error for Impossible {}

/// Numbers that fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    numbers: Numbers,
}

impl Plan {
    /// Looks whether the numbers can be.
    ///
    /// # Errors
    /// When they cannot; says which and why.
    pub fn new(numbers: Numbers) -> Result<Plan, Impossible> {
        let Numbers { users, conversations, groups, group_size, .. } = numbers;
        if users > USERS_MAX {
            return Err(Impossible::Users { wanted: users });
        }
        if conversations > users / 2 {
            return Err(Impossible::Conversations { wanted: conversations, users });
        }
        if groups > USERS_MAX {
            return Err(Impossible::Groups { wanted: groups });
        }
        if groups > 0 && !(2..=GROUP_MEMBERS_MAX as u64).contains(&group_size) {
            return Err(Impossible::GroupSize { wanted: group_size });
        }
        if groups > 0 && group_size > users {
            return Err(Impossible::Members { group_size, users });
        }
        Ok(Plan { numbers })
    }

    /// What it was made of.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// What all ids follow from.
    pub fn seed(&self) -> Seed {
        Seed(self.numbers.seed)
    }

    /// The numbers of the members of group `g`, the maker first.
    pub fn group_members(&self, g: u64) -> impl Iterator<Item = u64> + use<> {
        let Numbers { users, group_size, .. } = self.numbers;
        (0..group_size).map(move |member| (g * group_size + member) % users)
    }

    /// Everything, as requests for a store: all users before the first conversation, each request of `people_max` users or members, or a little
    /// more (one conversation is never divided).
    pub fn requests(&self, people_max: usize, ts: Wall) -> impl Iterator<Item = Request> + use<> {
        let plan = *self;
        let Numbers { users, conversations, groups, .. } = plan.numbers;
        let seed = plan.seed();
        let step = (people_max as u64).max(1);
        let users = (0..users).step_by(step as usize).map(move |first| {
            let slice = first..(first + step).min(users);
            slice.map(move |n| ImportedUser {
                device: DeviceKey { user: seed.user(n), device: DEVICE },
                phone: phone(n),
            })
        });
        let users =
            users.map(move |slice| Request::Import { users: slice.collect(), conversations: Vec::new(), ts });
        let direct = (0..conversations).map(move |c| ImportedConversation {
            conversation: seed.direct(c),
            kind: ConversationKind::Direct,
            members: vec![seed.user(2 * c), seed.user(2 * c + 1)],
        });
        let groups = (0..groups).map(move |g| ImportedConversation {
            conversation: seed.group(g),
            kind: ConversationKind::Group,
            members: plan.group_members(g).map(|n| seed.user(n)).collect(),
        });
        let mut conversations = direct.chain(groups);
        let conversations = std::iter::from_fn(move || {
            let (mut slice, mut people) = (Vec::new(), 0);
            while people < step as usize {
                let Some(next) = conversations.next() else { break };
                people += next.members.len();
                slice.push(next);
            }
            (!slice.is_empty()).then_some(Request::Import { users: Vec::new(), conversations: slice, ts })
        });
        users.chain(conversations)
    }
}

#[cfg(test)]
mod tests {
    use store::{Engine, MemoryStore, Reply};

    use super::*;

    const NUMBERS: Numbers = Numbers { users: 11, conversations: 5, groups: 4, group_size: 3, seed: 9 };

    fn plan() -> Plan {
        Plan::new(NUMBERS).expect("numbers that fit together")
    }

    #[test]
    fn numbers_that_cannot_be_are_named() {
        for (numbers, said) in [
            (
                Numbers { users: 1_000_000_001, ..NUMBERS },
                "--users 1000000001: there are phone numbers for 1000000000",
            ),
            (Numbers { conversations: 6, ..NUMBERS }, "so 11 users have 5 at most"),
            (
                Numbers { groups: 1_000_000_001, ..NUMBERS },
                "--groups 1000000001: there may be 1000000000 at most",
            ),
            (Numbers { group_size: 1, ..NUMBERS }, "--group-size 1: a group has 2 to 1024 members"),
            (
                Numbers { users: 5_000, group_size: 1_025, ..NUMBERS },
                "--group-size 1025: a group has 2 to 1024 members",
            ),
            (Numbers { group_size: 12, ..NUMBERS }, "--group-size 12: there are only 11 users"),
        ] {
            let impossible = Plan::new(numbers).expect_err(said);
            assert!(impossible.to_string().contains(said), "{impossible}");
        }
        assert!(Plan::new(Numbers { groups: 0, group_size: 0, ..NUMBERS }).is_ok());
        assert!(Plan::new(Numbers { users: 0, conversations: 0, groups: 0, ..NUMBERS }).is_ok());
    }

    #[test]
    fn group_members_follow_each_other_in_a_circle() {
        let members = |g| plan().group_members(g).collect::<Vec<_>>();
        assert_eq!([members(0), members(2), members(3)], [[0, 1, 2], [6, 7, 8], [9, 10, 0]]);
    }

    #[test]
    fn however_it_is_divided_the_same_is_made() {
        let made = |people_max| {
            let mut store = MemoryStore::new();
            let mut counts = (0, 0);
            for request in plan().requests(people_max, Wall(7)) {
                let mut replies = Vec::new();
                store.commit(&[request], &mut replies).expect("memory does not fail");
                let [Reply::Imported(imported)] = &replies[..] else { panic!("{replies:?}") };
                counts = (counts.0 + imported.users, counts.1 + imported.conversations);
            }
            store.check().expect("it is sound");
            assert_eq!(counts, (11, 9));
            store
        };
        let whole = made(1_000);
        assert_eq!(whole.conversations().count(), 9);
        for people_max in 0..13 {
            assert!(made(people_max) == whole, "{people_max} at once");
        }
    }

    #[test]
    fn no_request_is_longer_than_it_may_be() {
        for request in plan().requests(4, Wall(7)) {
            let Request::Import { users, conversations, .. } = &request else { panic!("{request:?}") };
            assert!(users.len() <= 4);
            let people: Vec<usize> = conversations.iter().map(|found| found.members.len()).collect();
            assert!(people.split_last().is_none_or(|(_, before)| before.iter().sum::<usize>() < 4));
        }
    }
}
