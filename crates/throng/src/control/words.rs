//! What is said over the control socket: lines of words and numbers.
//!
//! The command says what it wants in one line; the server answers with a line after each slice and one at the end. Both sides are the same
//! program; the number in the first word tells when they are not.

use seeding::{Numbers, Plan};

use crate::seed::Made;

/// No line of either side is longer.
pub const LINE_BYTES_MAX: usize = 1_024;

/// The first word, which changes whenever anything here does.
const SEED: &str = "seed/1";

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// So much was made so far.
    Made(Made),
    /// That was all.
    Done,
    /// It goes no further, and why.
    Refused(String),
}

/// The command's line.
pub fn write_request(plan: &Plan) -> String {
    let Numbers { users, conversations, groups, group_size, seed } = plan.numbers();
    format!("{SEED} {users} {conversations} {groups} {group_size} {seed}\n")
}

/// Reads the command's line.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn read_request(line: &str) -> Result<Plan, String> {
    let rest = line.strip_prefix(SEED).ok_or_else(|| {
        "the server is another version of throng than the command; use the same one".to_owned()
    })?;
    let [users, conversations, groups, group_size, seed] =
        numbers(rest).ok_or_else(|| format!("`{SEED}` takes five numbers"))?;
    Plan::new(Numbers { users, conversations, groups, group_size, seed }).map_err(|error| error.to_string())
}

/// The server's line.
pub fn write_answer(answer: &Answer) -> String {
    match answer {
        Answer::Made(made) => format!(
            "made {} {} {} {} {}\n",
            made.users, made.users_there, made.phones_taken, made.conversations, made.conversations_there
        ),
        Answer::Done => "done\n".to_owned(),
        Answer::Refused(why) => format!("refused {}\n", why.replace('\n', " ")),
    }
}

/// Reads the server's line; `None` when it is none.
pub fn read_answer(line: &str) -> Option<Answer> {
    if line == "done" {
        return Some(Answer::Done);
    }
    if let Some(why) = line.strip_prefix("refused ") {
        return Some(Answer::Refused(why.to_owned()));
    }
    let [users, users_there, phones_taken, conversations, conversations_there] =
        numbers(line.strip_prefix("made")?)?;
    Some(Answer::Made(Made { users, users_there, phones_taken, conversations, conversations_there }))
}

/// So many numbers, each with a space before it, and nothing else.
fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let mut words = text.strip_prefix(' ')?.split(' ');
    let mut found = [0; N];
    for number in &mut found {
        *number = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: Numbers = Numbers { users: 9, conversations: 4, groups: 2, group_size: 3, seed: u64::MAX };

    #[test]
    fn what_is_written_is_read() {
        let plan = Plan::new(NUMBERS).expect("numbers that fit together");
        let line = write_request(&plan);
        assert_eq!(line, "seed/1 9 4 2 3 18446744073709551615\n");
        assert_eq!(read_request(line.trim_end()), Ok(plan));
        let made =
            Made { users: 1, users_there: 2, phones_taken: 3, conversations: 4, conversations_there: 5 };
        for answer in [Answer::Made(made), Answer::Done, Answer::Refused("the disk is full".to_owned())] {
            let line = write_answer(&answer);
            assert!(line.ends_with('\n') && line.len() <= LINE_BYTES_MAX);
            assert_eq!(read_answer(line.trim_end()), Some(answer));
        }
    }

    #[test]
    fn what_is_no_request_is_refused_with_a_reason() {
        for (line, why) in [
            ("", "another version"),
            ("seed/2 1 2 3 4 5", "another version"),
            ("seed/1", "takes five numbers"),
            ("seed/1 1 0 0 0", "takes five numbers"),
            ("seed/1 1 0 0 0 0 0", "takes five numbers"),
            ("seed/1 1 0 0 0 -1", "takes five numbers"),
            ("seed/1 1  0 0 0 1", "takes five numbers"),
            ("seed/1 1 1 0 0 0", "--conversations 1"),
        ] {
            let said = read_request(line).expect_err(line);
            assert!(said.contains(why), "{line}: {said}");
        }
        for line in ["", "done ", "made 1 2 3 4", "made 1 2 3 4 5 6", "refused", "else"] {
            assert_eq!(read_answer(line), None, "{line}");
        }
    }
}
