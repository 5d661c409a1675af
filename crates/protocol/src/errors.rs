//! The one table of error codes and the one table of close codes.
//!
//! Everything that names a code is made from here: replies, REST problems, logs, metrics and `docs/errors.md`.
//! A row is here when the server can send it, and not before. Kept for what does not exist yet are the errors 2005
//! `device_mismatch`, 3001 `busy`, 3002 `no_such_call` and 3003 `wrong_state`, and the close codes 4403 forbidden and
//! 4410 revoked.

macro_rules! error_table {
    ($($variant:ident = $code:literal $name:literal, temporary: $temporary:literal, http: $http:literal,
       meaning: $meaning:literal, client: $client:literal;)*) => {
        /// Why a request was refused: 1xxx the request itself, 2xxx permission, 5xxx the server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ErrorCode {
            $(#[doc = $meaning] $variant = $code,)*
        }

        impl ErrorCode {
            /// Every row, in the order of the numbers.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The name on the wire, in logs and in metrics.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorCode::$variant => $name,)* }
            }

            /// Whether the same request may succeed later, unchanged.
            pub const fn temporary(self) -> bool {
                match self { $(ErrorCode::$variant => $temporary,)* }
            }

            /// The status a REST answer with this error has.
            pub const fn http_status(self) -> u16 {
                match self { $(ErrorCode::$variant => $http,)* }
            }

            /// What happened, for a reader of the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(ErrorCode::$variant => $meaning,)* }
            }

            /// What a client should do about it.
            pub const fn client_does(self) -> &'static str {
                match self { $(ErrorCode::$variant => $client,)* }
            }
        }
    };
}

macro_rules! close_table {
    ($($variant:ident = $code:literal $name:literal, comes_back: $comes_back:literal, meaning: $meaning:literal;)*) => {
        /// Why the server closed a connection: 1xxx as in RFC 6455, 44xx do not come back unchanged (but for
        /// 4429), 45xx come back in the window given.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum CloseCode {
            $(#[doc = $meaning] $variant = $code,)*
        }

        impl CloseCode {
            /// Every row, in the order of the numbers.
            pub const ALL: &[CloseCode] = &[$(CloseCode::$variant,)*];

            /// The name in `disconnect`, in logs and in metrics.
            pub const fn name(self) -> &'static str {
                match self { $(CloseCode::$variant => $name,)* }
            }

            /// Whether the client should connect again by itself, as it is.
            pub const fn comes_back(self) -> bool {
                match self { $(CloseCode::$variant => $comes_back,)* }
            }

            /// What happened, for a reader of the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(CloseCode::$variant => $meaning,)* }
            }
        }
    };
}

error_table! {
    BadRequest = 1001 "bad_request", temporary: false, http: 400,
        meaning: "The request is malformed: not JSON or CBOR, a field missing, unknown, given twice, of the wrong type or out of range, or a verb out of place. The message names the field.",
        client: "Correct the program; the same request will always be refused.";
    TooLarge = 1002 "too_large", temporary: false, http: 413,
        meaning: "The payload is longer than the server takes.",
        client: "Send less, or send a reference to where the rest can be fetched.";
    UnknownVerb = 1003 "unknown_verb", temporary: false, http: 404,
        meaning: "The server has no such verb.",
        client: "Do without it: the server is older than the client, or the name is misspelt.";
    RateLimited = 1004 "rate_limited", temporary: true, http: 429,
        meaning: "Too many requests in too short a time.",
        client: "Repeat the request after `retry_after_ms`, and send less often.";
    Unauthorised = 2001 "unauthorised", temporary: false, http: 401,
        meaning: "The token is missing, malformed, signed with a key the server does not trust, meant for somebody else, or not yet valid.",
        client: "Get a valid token, then connect again.";
    TokenExpired = 2002 "token_expired", temporary: false, http: 401,
        meaning: "The token was valid and is no longer.",
        client: "Get a fresh token, then connect or `refresh` with it.";
    NotMember = 2003 "not_member", temporary: false, http: 403,
        meaning: "There is no such conversation, or this user is not a member of it. The two cannot be told apart from outside.",
        client: "Drop the conversation from view; being added again is announced by a push.";
    NotFound = 2004 "not_found", temporary: false, http: 404,
        meaning: "What the request names does not exist.",
        client: "Correct the address or the id.";
    ClientIdReused = 2006 "client_id_reused", temporary: false, http: 409,
        meaning: "This user has already sent a message with this `client_id`, to another conversation or with another payload. Nothing was stored.",
        client: "Choose a fresh random `client_id` for each message; repeat one only with the same message.";
    Overloaded = 5001 "overloaded", temporary: true, http: 503,
        meaning: "The server has more to do than it can, and has refused this request without doing any of it.",
        client: "Repeat the same request after `retry_after_ms`, waiting longer each time.";
    ReadOnly = 5002 "read_only", temporary: true, http: 503,
        meaning: "The server cannot store anything at present, for instance because its disk is full. Reading still works.",
        client: "Keep the message and repeat it after `retry_after_ms`.";
    Internal = 5003 "internal", temporary: true, http: 500,
        meaning: "The server failed. Whether the request was carried out is not known.",
        client: "Repeat the same request, with the same `client_id`; it is then carried out once at most.";
}

close_table! {
    Normal = 1000 "normal", comes_back: false,
        meaning: "The client closed with this code, and the server answers with it, as it does with any code a client closes with.";
    ProtocolError = 1002 "protocol_error", comes_back: false,
        meaning: "The client broke the WebSocket protocol: an unmasked frame, a reserved bit, a bad fragment.";
    UnsupportedData = 1003 "unsupported_data", comes_back: false,
        meaning: "A binary frame on a JSON connection, or a text frame on a CBOR one.";
    InvalidData = 1007 "invalid_data", comes_back: false,
        meaning: "A text frame that is not UTF-8.";
    PolicyViolation = 1008 "policy_violation", comes_back: false,
        meaning: "A WebSocket message in too many fragments, or whose fragments take too long.";
    MessageTooBig = 1009 "message_too_big", comes_back: false,
        meaning: "A WebSocket message longer than any command can be.";
    BadMessage = 4400 "bad_message", comes_back: false,
        meaning: "What came cannot be read at all: ill-formed CBOR, or a first command that is not `connect`.";
    Unauthorised = 4401 "unauthorised", comes_back: false,
        meaning: "The token was refused or has expired. Come back with a valid one.";
    ConnectTimeout = 4408 "connect_timeout", comes_back: false,
        meaning: "No `connect` within 10 seconds of the connection being accepted.";
    Replaced = 4409 "replaced", comes_back: false,
        meaning: "The same device has connected again; the newer connection stays.";
    RateLimited = 4429 "rate_limited", comes_back: true,
        meaning: "Far too many commands in too short a time.";
    Internal = 4500 "internal", comes_back: true,
        meaning: "The server failed while handling this connection.";
    Draining = 4501 "draining", comes_back: true,
        meaning: "The server is being stopped or replaced.";
    Overloaded = 4503 "overloaded", comes_back: true,
        meaning: "The server has more connections or work than it can take, or could not make the session.";
    SlowConsumer = 4504 "slow_consumer", comes_back: true,
        meaning: "The client did not read what was sent to it. What it has not acknowledged is sent again when it is back.";
    NoPong = 4505 "no_pong", comes_back: true,
        meaning: "Two pings went unanswered.";
}

impl ErrorCode {
    /// The number on the wire.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The row with this number.
    pub fn from_code(code: u64) -> Option<ErrorCode> {
        ErrorCode::ALL.iter().copied().find(|row| u64::from(row.code()) == code)
    }
}

impl CloseCode {
    /// The number in the close frame.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The row with this number.
    pub fn from_code(code: u64) -> Option<CloseCode> {
        CloseCode::ALL.iter().copied().find(|row| u64::from(row.code()) == code)
    }
}
