//! How many connections the limit of open files leaves room for.

use reactor::DescriptorLimit;

use configuration::Config;

/// Descriptors of a table that are no connections of a shard: the database, listeners, wakers, what HTTP needs.
const RESERVED: u64 = 64;

/// Tables of open files, and what fits into each.
#[derive(Debug, Clone, Copy)]
pub struct Tables {
    limit: DescriptorLimit,
    shards: u16,
    /// Whether each shard gets a table of its own.
    apart: bool,
}

impl Tables {
    /// Raises the limit as far as it goes and looks what the system permits.
    pub fn prepare(shards: u16) -> Tables {
        let limit = reactor::raise_descriptor_limit();
        Tables { limit, shards, apart: reactor::can_unshare_files() }
    }

    /// Says what was found.
    pub fn tell(&self) {
        let shown = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
        let (was, now) = (shown(self.limit.soft_before), shown(self.limit.now));
        let shards = self.shards;
        if self.apart {
            tracing::info!(%was, %now, shards, "raised the limit of open files; it holds for each shard, which has a table of its own");
        } else {
            tracing::info!(%was, %now, shards, "raised the limit of open files; it holds for all shards together");
        }
    }

    /// The cap of one shard: the configured one, or what there is room for.
    pub fn connections_max(&self, config: &Config) -> usize {
        let room = self.room();
        config.connections.shard_max.map_or(room, |max| (max as usize).min(room))
    }

    /// Connections that one shard has descriptors for. Under a limit that is small itself only half of it is held back: accepting
    /// rests by itself when none is left, but then HTTP would have none either.
    fn room(&self) -> usize {
        let Some(limit) = self.limit.now else { return usize::MAX };
        let shards = u64::from(self.shards.max(1));
        let reserved = (RESERVED + shards).min(limit / 2);
        let room = limit - reserved;
        (if self.apart { room } else { room / shards }) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(limit: u64, shards: u16, apart: bool) -> usize {
        let limit = DescriptorLimit { soft_before: Some(limit), now: Some(limit), hard: Some(limit) };
        Tables { limit, shards, apart }.room()
    }

    #[test]
    fn a_table_has_room_for_its_limit_without_what_is_held_back() {
        assert_eq!(room(20_000, 2, true), 20_000 - 64 - 2);
        assert_eq!(room(1_000_000, 8, true), 1_000_000 - 64 - 8);
    }

    #[test]
    fn shards_that_share_a_table_share_its_room() {
        assert_eq!(room(1_024, 4, false), (1_024 - 64 - 4) / 4);
    }

    #[test]
    fn a_small_limit_still_lets_somebody_in() {
        assert_eq!(room(64, 1, true), 32);
        assert_eq!(room(64, 2, false), 16);
    }

    #[test]
    fn no_limit_is_no_cap() {
        let limit = DescriptorLimit { soft_before: None, now: None, hard: None };
        assert_eq!(Tables { limit, shards: 2, apart: true }.room(), usize::MAX);
    }
}
