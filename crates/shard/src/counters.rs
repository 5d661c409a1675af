//! What a shard counts. Names, units and help texts come from one enum; whoever shows them goes through [`Metric::ALL`].

macro_rules! metrics {
    ($($name:ident = $text:literal, $kind:literal, $help:literal;)*) => {
        /// One thing that is counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Metric {
            $(#[doc = $help] $name,)*
        }

        impl Metric {
            /// Every metric.
            pub const ALL: &'static [Metric] = &[$(Metric::$name,)*];

            /// Its name, with the unit, as exposed.
            pub const fn name(self) -> &'static str {
                match self { $(Metric::$name => $text,)* }
            }

            /// `counter` or `gauge`.
            pub const fn kind(self) -> &'static str {
                match self { $(Metric::$name => $kind,)* }
            }

            /// What it says, in one sentence.
            pub const fn help(self) -> &'static str {
                match self { $(Metric::$name => $help,)* }
            }
        }
    };
}

metrics! {
    Connections = "throng_connections", "gauge", "Open connections, those that have not authenticated included.";
    Unauthenticated = "throng_connections_unauthenticated", "gauge", "Connections that have not authenticated yet.";
    Sessions = "throng_sessions", "gauge", "Live sessions owned by the shard's partitions.";
    Devices = "throng_devices_known", "gauge", "Devices known to the shard's partitions.";
    Conversations = "throng_conversations_resident", "gauge", "Conversations in memory.";
    Flights = "throng_flights", "gauge", "Sessions with messages on their way to the device.";
    Accepted = "throng_accepts_total", "counter", "Connections accepted.";
    Upgrades = "throng_upgrades_total", "counter", "Upgrades to a WebSocket.";
    UpgradesRefused = "throng_upgrades_refused_total", "counter", "Upgrades refused: malformed, wrong origin, overload.";
    HandedOver = "throng_http_handed_over_total", "counter", "Connections handed over to the HTTP side.";
    Authenticated = "throng_connects_total", "counter", "Connects with a valid token.";
    AuthenticationFailed = "throng_connects_refused_total", "counter", "Connects with a token that was refused.";
    Commands = "throng_commands_total", "counter", "Commands received.";
    CommandsRefused = "throng_commands_refused_total", "counter", "Commands answered with an error.";
    Sends = "throng_messages_committed_total", "counter", "Messages committed and answered.";
    Duplicates = "throng_messages_duplicate_total", "counter", "Repeated messages that were recognised.";
    Pushes = "throng_messages_pushed_total", "counter", "Messages pushed to devices.";
    Passing = "throng_passing_pushed_total", "counter", "Passing messages pushed to devices.";
    Shed = "throng_pushes_shed_total", "counter", "Receipts and passing messages dropped because a client does not read.";
    Closed = "throng_closes_total", "counter", "Connections closed by the server.";
    BytesIn = "throng_received_bytes_total", "counter", "Bytes received.";
    BytesOut = "throng_sent_bytes_total", "counter", "Bytes given to sockets.";
    Faults = "throng_faults_total", "counter", "Panics that were survived: one connection was closed, or one partition began anew. A bug, each of them.";
    Pings = "throng_pings_sent_total", "counter", "Pings sent to quiet connections.";
}

/// The numbers of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters([u64; Metric::ALL.len()]);

impl Default for Counters {
    fn default() -> Self {
        Counters([0; Metric::ALL.len()])
    }
}

impl Counters {
    /// Counts one.
    pub fn count(&mut self, metric: Metric) {
        self.add(metric, 1);
    }

    /// Counts several.
    pub fn add(&mut self, metric: Metric, amount: u64) {
        self.0[metric as usize] += amount;
    }

    /// Sets a gauge.
    pub fn set(&mut self, metric: Metric, value: usize) {
        self.0[metric as usize] = value as u64;
    }

    /// The value.
    pub fn get(&self, metric: Metric) -> u64 {
        self.0[metric as usize]
    }
}
