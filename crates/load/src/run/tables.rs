//! How many threads a run needs: the connections, over what one table of descriptors holds.

use std::fmt;

use reactor::DescriptorLimit;

/// Descriptors of a table that are no connections: standard streams, files, epoll sets, wakers.
const RESERVED: u64 = 64;
/// Connections of one thread, whatever its table holds: its turns shall stay short.
const PER_THREAD_MAX: usize = 50_000;

/// How the connections of a run are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    /// How many threads there are.
    pub threads: usize,
    /// Whether each of them has a table of its own.
    pub apart: bool,
}

/// The limit of open files is too low.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    wanted: usize,
    room: usize,
    limit: DescriptorLimit,
    apart: bool,
    threads: Option<usize>,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit.now.unwrap_or(u64::MAX);
        write!(f, "{} connections do not fit the limit of open files ({limit}", self.wanted)?;
        match (self.apart, self.threads) {
            (true, Some(threads)) => write!(
                f,
                " for each of {threads} threads): {} fit; leave --threads out, or raise the limit (`ulimit -n`)",
                self.room
            ),
            _ => write!(
                f,
                "): {} fit; raise it with `ulimit -n {}` (above the hard limit that takes root, or LimitNOFILE= of systemd), or let \
                 threads have tables of their own, which this system refuses (as in Docker's default profile)",
                self.room,
                self.wanted as u64 + RESERVED
            ),
        }
    }
}

impl std::error::Error for TooMany {}

impl Tables {
    /// Spreads so many connections, over so many threads if that is given.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn spread(
        wanted: usize,
        threads: Option<usize>,
        limit: DescriptorLimit,
        apart: bool,
    ) -> Result<Tables, TooMany> {
        let table =
            limit.now.map_or(usize::MAX, |limit| limit.saturating_sub(RESERVED).max(limit / 2) as usize);
        let room = match (apart, threads) {
            (true, None) => usize::MAX,
            (true, Some(threads)) => table.saturating_mul(threads),
            (false, _) => table,
        };
        if wanted > room {
            return Err(TooMany { wanted, room, limit, apart, threads });
        }
        let needed = wanted.div_ceil(table.min(PER_THREAD_MAX)).max(1);
        Ok(Tables { threads: threads.unwrap_or(needed), apart })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(now: u64) -> DescriptorLimit {
        DescriptorLimit { soft_before: Some(now), now: Some(now), hard: Some(now) }
    }

    #[test]
    fn threads_are_as_many_as_tables_are_needed() {
        let threads = |wanted, given, apart| {
            Tables::spread(wanted, given, limit(20_000), apart).map(|tables| tables.threads)
        };
        assert_eq!(threads(100, None, true), Ok(1));
        assert_eq!(threads(19_936, None, true), Ok(1));
        assert_eq!(threads(19_937, None, true), Ok(2));
        assert_eq!(threads(400_000, None, true), Ok(21));
        assert_eq!(threads(100, Some(2), true), Ok(2));
        assert_eq!(threads(19_936, None, false), Ok(1));
        let free = DescriptorLimit { soft_before: None, now: None, hard: None };
        assert_eq!(Tables::spread(100_001, None, free, true).map(|tables| tables.threads), Ok(3));
    }

    #[test]
    fn what_does_not_fit_is_told_with_what_would() {
        let said = |wanted, given, apart| {
            Tables::spread(wanted, given, limit(1_024), apart).expect_err("too many").to_string()
        };
        assert_eq!(
            said(5_000, None, false),
            "5000 connections do not fit the limit of open files (1024): 960 fit; raise it with `ulimit -n 5064` (above the hard limit that \
             takes root, or LimitNOFILE= of systemd), or let threads have tables of their own, which this system refuses (as in Docker's \
             default profile)"
        );
        assert_eq!(
            said(5_000, Some(2), true),
            "5000 connections do not fit the limit of open files (1024 for each of 2 threads): 1920 fit; leave --threads out, or raise the \
             limit (`ulimit -n`)"
        );
    }
}
