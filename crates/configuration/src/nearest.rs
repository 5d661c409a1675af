//! What somebody probably meant: the known name with the fewest typing mistakes from the one given.

/// The candidate nearest to `name`; the first one when several are.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    candidates.min_by_key(|candidate| distance_of_names(name, candidate))
}

/// Dotted names are compared whole, and by their last part: a known key in the wrong section is near.
fn distance_of_names(one: &str, other: &str) -> usize {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    distance(one, other).min(distance(&last(one), &last(other)) + 1)
}

/// Letters to change, add, leave out or swap with their neighbour ("optimal string alignment", Damerau 1964).
pub fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let same = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + same);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(before_last[j - 2] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_counted() {
        for (one, other, count) in [
            ("", "", 0),
            ("listen", "listen", 0),
            ("listne", "listen", 1),
            ("lisen", "listen", 1),
            ("listenn", "listen", 1),
            ("lixten", "listen", 1),
            ("kitten", "sitting", 3),
            ("ab", "", 2),
        ] {
            assert_eq!(distance(one, other), count, "{one} {other}");
            assert_eq!(distance(other, one), count, "{other} {one}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_section_is_near() {
        let known = ["listen", "log.level", "connections.ping_interval"];
        let nearest = |name| nearest(name, known.into_iter());
        assert_eq!(nearest("ping_interval"), Some("connections.ping_interval"));
        assert_eq!(nearest("log.levle"), Some("log.level"));
        assert_eq!(nearest("lisetn"), Some("listen"));
    }
}
