//! Users of one partition, for whom one piece of mail is enough.

use std::ops::Deref;
use std::sync::Arc;

use model::UserId;

/// Some users. One alone, as nearly always in a direct conversation, is kept in place: a shared list would cost every piece of mail an
/// atomic count on either side, on a line that the cores take from each other.
#[derive(Debug, Clone)]
pub enum Users {
    /// One.
    One(UserId),
    /// Any number, shared.
    Many(Arc<[UserId]>),
}

impl Deref for Users {
    type Target = [UserId];
    fn deref(&self) -> &[UserId] {
        match self {
            Users::One(user) => std::slice::from_ref(user),
            Users::Many(users) => users,
        }
    }
}

impl From<&[UserId]> for Users {
    fn from(users: &[UserId]) -> Self {
        match users {
            [user] => Users::One(*user),
            users => Users::Many(Arc::from(users)),
        }
    }
}

impl FromIterator<UserId> for Users {
    fn from_iter<I: IntoIterator<Item = UserId>>(users: I) -> Self {
        let mut users = users.into_iter();
        match (users.next(), users.next()) {
            (Some(user), None) => Users::One(user),
            (first, second) => Users::Many(first.into_iter().chain(second).chain(users).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_there_are_they_are_the_same_in_order() {
        for count in 0..4 {
            let all: Vec<UserId> = (0..count).map(|number| UserId([number; 16])).collect();
            assert_eq!(*Users::from(&all[..]), all);
            assert_eq!(*all.iter().copied().collect::<Users>(), all);
        }
    }
}
