//! Every limit of the server in one place, with the arithmetic that ties them together checked while compiling.
//!
//! What an operator may change has its default here and its option in the configuration; the rest is fixed.

use crate::Span;

/// Longest payload a client may send, in bytes (the protocol's default).
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;
/// Longest WebSocket message from a client, in bytes: a payload in base64 (4/3) and room for the rest of the command.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX / 3 * 4 + 4 + 2 * 1024;
/// Most fragments of one message before its FIN.
pub const FRAGMENTS_MAX: usize = 64;
/// Longest request head, in bytes.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Most header lines in a request head.
pub const HEADERS_MAX: usize = 64;
/// Deepest nesting of a command, in JSON as in CBOR.
pub const NESTING_MAX: usize = 16;

/// From accept to a valid `connect`.
pub const CONNECT_DEADLINE: Span = Span::seconds(10);
/// A connection quiet for this long is pinged (default).
pub const PING_INTERVAL: Span = Span::seconds(60);
/// Unanswered pings before a connection is closed.
pub const PINGS_UNANSWERED_MAX: u8 = 2;
/// `token_expiring` goes out this long before the token expires.
pub const TOKEN_EXPIRING_NOTICE: Span = Span::seconds(60);
/// From the first to the last fragment of a message.
pub const FRAGMENTS_DEADLINE: Span = Span::seconds(10);

/// Messages pushed to one device and not yet acknowledged by it.
pub const WINDOW_MESSAGES_MAX: usize = 256;
/// Payload bytes pushed to one device and not yet acknowledged by it. At least one message always fits.
pub const WINDOW_BYTES_MAX: usize = 512 * 1024;
/// Bytes that may wait for a socket that does not take them before the connection counts as a slow consumer.
pub const OUTBOX_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Above so many waiting bytes, passing pushes to that connection are dropped.
pub const OUTBOX_PASSING_BYTES_MAX: usize = 64 * 1024;

/// Most members of a group.
pub const GROUP_MEMBERS_MAX: usize = 1_024;
/// Receipts are not sent in conversations with more members than this.
pub const RECEIPTS_MEMBERS_MAX: usize = 64;
/// Most messages in one page of `sync`.
pub const SYNC_LIMIT_MAX: u32 = 256;
/// Most payload bytes in one page read from the log; a page always holds at least one message.
pub const PAGE_BYTES_MAX: usize = 512 * 1024;
/// Longest a `client_id` is remembered after its message (default).
pub const IDEMPOTENCY_WINDOW: Span = Span::seconds(7 * 24 * 3600);

/// Connections of one shard that have not said who they are (default).
pub const UNAUTHENTICATED_MAX: usize = 8_192;
/// The same, from one address (default).
pub const UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 1_024;
/// Upgrades a second that one shard admits, on average (default): above what a core can do, so that only a herd meets it.
pub const ADMISSION_PER_SECOND: u32 = 20_000;
/// Upgrades that one shard admits at once (default).
pub const ADMISSION_BURST: u32 = 20_000;
/// Earliest and latest moment at which a client is asked to come back (default).
pub const RECONNECT_WINDOW: (Span, Span) = (Span(500), Span::seconds(10));
/// Every connection is looked at once in this time, for pings, expiry and stalls.
pub const SWEEP_ROUND: Span = Span::seconds(2);
/// A connection that took nothing of what waits for it for this long is a slow consumer.
pub const STALL_DEADLINE: Span = Span::seconds(60);
/// Commands one connection may send in a burst; then `COMMANDS_PER_SECOND` of them a second.
pub const COMMANDS_BURST: u32 = 2_000;
/// Commands a second one connection may send, on average.
pub const COMMANDS_PER_SECOND: u32 = 500;
/// A `sync` counts as one command, and as one more for each so many entries it asks for.
pub const SYNC_ENTRIES_PER_COMMAND: u32 = 8;
/// Inputs that may wait for a conversation or a user to be loaded.
pub const WAITING_LINE_MAX: usize = 1_024;
/// Requests to the store that one conversation may have in flight.
pub const IN_FLIGHT_MAX: usize = 1_024;
/// A conversation is settled (marks taken away, what everybody has deleted) after it was quiet for this long.
pub const SETTLE_AFTER: Span = Span::seconds(2);
/// One that is never quiet for so long is trimmed this often at most.
pub const TRIM_EVERY: Span = Span::seconds(10);
/// Conversations one partition keeps in memory (default); the least recently used ones make room.
pub const RESIDENT_CONVERSATIONS_MAX: usize = 1_024;
/// Bytes a turn reads from one connection before it looks at the next one.
pub const TURN_BYTES_PER_CONNECTION: usize = 64 * 1024;

// A base64 payload of the greatest size and its command fit one message.
const _: () = assert!(CLIENT_MESSAGE_BYTES_MAX >= PAYLOAD_BYTES_MAX.div_ceil(3) * 4 + 1024);
// A full window fits the outbox in base64, headers included, so that a device that reads is never called slow.
const _: () = assert!(
    WINDOW_BYTES_MAX / 3 * 4 + PAYLOAD_BYTES_MAX / 3 * 4 + WINDOW_MESSAGES_MAX * 512 <= OUTBOX_BYTES_MAX
);
const _: () = assert!(TRIM_EVERY.0 >= SETTLE_AFTER.0);
const _: () = assert!(PAGE_BYTES_MAX >= PAYLOAD_BYTES_MAX && WINDOW_BYTES_MAX >= PAYLOAD_BYTES_MAX);
const _: () = assert!(OUTBOX_PASSING_BYTES_MAX < OUTBOX_BYTES_MAX);
const _: () = assert!(TOKEN_EXPIRING_NOTICE.0 >= PINGS_UNANSWERED_MAX as u64 * 1_000);
