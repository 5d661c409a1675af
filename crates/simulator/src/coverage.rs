//! How often the rare things happened, so that a run that tests nothing does not look like one that found nothing.

use std::fmt;

macro_rules! counted {
    ($($name:ident = $text:literal;)*) => {
        /// One thing that is counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Seen {
            $(#[doc = $text] $name,)*
        }

        impl Seen {
            /// Everything that is counted.
            pub const ALL: &'static [Seen] = &[$(Seen::$name,)*];

            /// What it is called.
            pub const fn text(self) -> &'static str {
                match self { $(Seen::$name => $text,)* }
            }
        }
    };
}

counted! {
    Turns = "turns";
    Commits = "commits";
    Crashes = "crashes";
    Drains = "drains";
    DiskFull = "requests on a full disk";
    FullWrites = "writes for which there was no room, one at a time";
    FailedSyncs = "syncs that failed and ended the process";
    LostTails = "crashes that lost a batch that was not synced";
    TornTails = "crashes that left a part of a batch";
    Survivors = "crashes that left a batch of which nobody had been told";
    InterruptedRecoveries = "recoveries that a crash interrupted";
    Connects = "sessions";
    ConnectsWithoutQuery = "sessions of known devices that asked the store nothing";
    HandedOver = "requests handed over to the HTTP side";
    Strangers = "strangers who spoke nonsense";
    ConnectionsFull = "connections turned away because a shard had as many as it may have";
    HandshakesRefused = "upgrades refused";
    Takeovers = "takeovers";
    Impatience = "clients that connected anew while their connect was not answered";
    TakeoverWhileWaiting = "sessions that began while the device waited for its registration or list";
    NewestReplaced = "newest connections closed as replaced";
    StaleMail = "pieces of mail for a connection whose slot had another one by then";
    Broken = "connections broken by the client";
    Stalls = "clients that stopped reading for a while";
    Unsent = "turns that left bytes unsent";
    SlowConsumers = "slow consumers closed";
    NoPong = "connections closed for want of a pong";
    TokenExpired = "connections closed because the token expired";
    Refreshes = "tokens refreshed";
    Sends = "messages committed";
    Confirmed = "messages confirmed to their sender";
    Resends = "messages sent again";
    Duplicates = "repeats recognised";
    ClientIdReused = "reused client ids refused";
    Forgotten = "client ids forgotten";
    TakenAgain = "forgotten client ids taken again";
    Pushes = "entries pushed";
    PushedAgain = "entries pushed again on a later connection";
    PushedOwn = "own messages pushed to the sending device";
    Passing = "passing messages received";
    Receipts = "receipts received";
    CaughtUp = "caught_up received";
    Acknowledged = "cursors moved";
    Reads = "read marks confirmed";
    Synced = "pages of sync received";
    Pages = "pages fetched for devices that are behind";
    PageEmpty = "pages that were empty";
    PageAfterRemoval = "pages fetched for a device that is no member any more";
    WindowFull = "windows filled with messages";
    WindowBytesFull = "windows filled with bytes";
    BeyondHead = "recv beyond the head refused";
    NotMember = "strangers refused";
    Overloaded = "requests refused as overloaded";
    RateLimited = "requests refused by rate";
    ReadOnly = "requests refused as read-only";
    Loads = "conversations loaded";
    Reloads = "conversations loaded again in the same process";
    Settles = "conversations settled";
    SettleRaced = "settles overtaken by an append in the same batch";
    Trims = "logs trimmed";
    Added = "members added";
    Removed = "members removed";
    SettleWaited = "settles that a full disk undid";
    Registered = "devices registered";
    LateDevices = "devices added to users who had some";
    DiskStalls = "times the disk did nothing for a while";
    ShardStalls = "times a shard did nothing for a while";
    MailHeld = "pairs of shards whose mail was held back";
    Faults = "rules that panicked, on purpose";
    Storms = "storms";
    Bursts = "bursts";
}

/// The counts of one or more runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage([u64; Seen::ALL.len()]);

impl Default for Coverage {
    fn default() -> Self {
        Coverage([0; Seen::ALL.len()])
    }
}

impl Coverage {
    /// Counts one.
    pub fn count(&mut self, seen: Seen) {
        self.add(seen, 1);
    }

    /// Counts several.
    pub fn add(&mut self, seen: Seen, amount: u64) {
        self.0[seen as usize] += amount;
    }

    /// The count.
    pub fn get(&self, seen: Seen) -> u64 {
        self.0[seen as usize]
    }

    /// What never happened.
    pub fn never(&self) -> Vec<&'static str> {
        Seen::ALL.iter().filter(|seen| self.get(**seen) == 0).map(|seen| seen.text()).collect()
    }

    /// Adds those of another run.
    pub fn merge(&mut self, other: &Coverage) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for seen in Seen::ALL {
            writeln!(f, "{:>10}  {}", self.get(*seen), seen.text())?;
        }
        Ok(())
    }
}
