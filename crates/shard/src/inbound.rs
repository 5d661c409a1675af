//! From bytes to inputs: the request head, frames, commands.

use std::num::NonZeroU64;

use auth::{Identity, TokenError};
use domain::{Act, Input, fault};
use model::Seq;
use model::limits::SYNC_ENTRIES_PER_COMMAND;
use protocol::{Answer, CloseCode, Command, Encoding, ErrorCode, Refusal, Reply, Request, RequestId};
use websocket::{Event, MessageKind, Progress, Upgrade};

use crate::admission::TooFast;
use crate::connection::{Opening, Phase};
use crate::counters::Metric;
use crate::event::Close;
use crate::shard::{Core, Shard};

/// The path on which WebSockets are opened.
pub const SOCKET_PATH: &str = "/v1/socket";

/// What the head of a request amounts to.
enum Head {
    Incomplete,
    Upgraded { head_bytes: usize },
    Ended,
}

impl Shard {
    pub(crate) fn received(&mut self, slot: u32, bytes: &mut [u8]) {
        let now = self.core.now.mono;
        self.core.counters.add(Metric::BytesIn, bytes.len() as u64);
        let Some(connection) = self.core.table.get(slot) else { return };
        connection.seen(now);
        match connection.phase {
            Phase::Head => self.head(slot, bytes),
            Phase::Upgraded | Phase::Open => self.frames(slot, bytes),
            Phase::Free | Phase::Closing => {}
        }
    }

    fn head(&mut self, slot: u32, bytes: &mut [u8]) {
        let Some(mut opening) = self.core.table.take_opening(slot) else { return };
        let kept = opening.head.len();
        if kept > 0 {
            opening.head.extend_from_slice(bytes);
            let mut head = std::mem::take(&mut opening.head);
            match self.core.head(slot, opening, &head) {
                Head::Incomplete => self.core.keep(slot, head),
                Head::Upgraded { head_bytes } => self.frames(slot, &mut head[head_bytes..]),
                Head::Ended => {}
            }
        } else {
            match self.core.head(slot, opening, bytes) {
                Head::Incomplete => self.core.keep(slot, bytes.to_vec()),
                Head::Upgraded { head_bytes } => self.frames(slot, &mut bytes[head_bytes..]),
                Head::Ended => {}
            }
        }
    }

    fn frames(&mut self, slot: u32, bytes: &mut [u8]) {
        let Shard { pool, websocket, core } = self;
        let mut receiver = std::mem::take(&mut core.table.at(slot).receiver);
        let mut frames = receiver.feed(websocket, pool, core.now.mono, bytes);
        // At most one pong a read, however many pings came.
        let mut pong: Option<([u8; 125], usize)> = None;
        loop {
            match frames.next() {
                Ok(None) => break,
                Ok(Some(Event::Message { kind, bytes })) => core.message(slot, kind, bytes),
                Ok(Some(Event::Ping(payload))) => {
                    if core.within_rate(slot, 1).is_ok() {
                        let mut kept = [0; 125];
                        kept[..payload.len()].copy_from_slice(payload);
                        pong = Some((kept, payload.len()));
                    }
                }
                Ok(Some(Event::Pong(_))) => {
                    let _ = core.within_rate(slot, 1);
                }
                Ok(Some(Event::Close { code, .. })) => core.closed_by_peer(slot, code),
                Err(error) => {
                    let code = CloseCode::from_code(u64::from(error.close_code()))
                        .unwrap_or(CloseCode::ProtocolError);
                    core.close(slot, code, &error.to_string());
                }
            }
            if core.table.at(slot).phase == Phase::Closing {
                pong = None;
                break;
            }
        }
        drop(frames);
        if core.table.at(slot).phase == Phase::Closing {
            receiver.discard(pool);
        } else if let Some((payload, len)) = pong {
            core.pong(slot, &payload[..len]);
        }
        core.table.at(slot).receiver = receiver;
    }
}

impl Core {
    /// Reads a head; the opening goes back into the record unless the connection is over.
    fn head(&mut self, slot: u32, mut opening: Box<Opening>, bytes: &[u8]) -> Head {
        let progress = opening.reader.advance(bytes, SOCKET_PATH);
        fault::point();
        let outcome = match progress {
            Progress::Incomplete => Head::Incomplete,
            Progress::Other => {
                self.table.put_opening(slot, opening);
                self.hand_over(slot, bytes);
                return Head::Ended;
            }
            Progress::Upgrade(upgrade) => match self.judge(&mut opening, &upgrade) {
                Ok(encoding) => {
                    self.upgrade(slot, &upgrade, encoding);
                    Head::Upgraded { head_bytes: upgrade.head_bytes }
                }
                Err((status, reason, headers)) => {
                    self.table.put_opening(slot, opening);
                    self.refuse_upgrade(slot, status, reason, headers);
                    return Head::Ended;
                }
            },
            Progress::Refused(refusal) => {
                self.table.put_opening(slot, opening);
                self.refuse_upgrade(slot, refusal.status, refusal.reason, refusal.headers);
                return Head::Ended;
            }
        };
        self.table.put_opening(slot, opening);
        outcome
    }

    fn keep(&mut self, slot: u32, head: Vec<u8>) {
        if let Some(opening) = self.table.opening(slot) {
            opening.head = head;
        }
    }

    /// What the request is not told by its form: whether origin, subprotocol, token and load permit it.
    #[expect(clippy::type_complexity, reason = "the parts of a refusal, used once")]
    fn judge(
        &mut self,
        opening: &mut Opening,
        upgrade: &Upgrade<'_>,
    ) -> Result<Option<Encoding>, (u16, &'static str, &'static [(&'static str, &'static str)])> {
        if let Some(origin) = upgrade.origin
            && !self.origin_allowed(origin, upgrade.host)
        {
            return Err((
                403,
                "this origin may not connect: add it to the allowed origins of the server",
                &[],
            ));
        }
        let mut offered = upgrade.subprotocols().peekable();
        let offers = offered.peek().is_some();
        let encoding = offered.find_map(Encoding::from_subprotocol);
        if offers && encoding.is_none() {
            return Err((
                400,
                "none of the offered subprotocols is known: offer throng.v1.json or throng.v1.cbor",
                &[],
            ));
        }
        if let Some(token) = upgrade.bearer {
            match auth::verify(&self.settings.keys, &self.settings.rules, token, self.now.wall) {
                Ok(identity) => opening.identity = Some(identity),
                Err(_) => {
                    self.counters.count(Metric::AuthenticationFailed);
                    return Err((
                        401,
                        "the token in Authorization was refused",
                        &[("WWW-Authenticate", "Bearer")],
                    ));
                }
            }
        }
        if self.sweep.draining() || self.admission.take(self.now.mono).is_err() {
            return Err((503, "too many clients are coming at once", &[("Retry-After", "2")]));
        }
        Ok(encoding)
    }

    fn origin_allowed(&self, origin: &str, host: &str) -> bool {
        if self.settings.origins.is_empty() {
            // What this server speaks itself. Behind a proxy that speaks TLS, the origin is for the operator to name.
            return origin.strip_prefix("http://") == Some(host);
        }
        self.settings.origins.iter().any(|allowed| allowed == origin)
    }

    fn upgrade(&mut self, slot: u32, upgrade: &Upgrade<'_>, encoding: Option<Encoding>) {
        self.counters.count(Metric::Upgrades);
        let from = self.actions.output.len();
        let subprotocol = encoding.map(Encoding::subprotocol);
        websocket::write_switching_protocols(&mut self.actions.output, &upgrade.key, subprotocol);
        self.write(slot, from);
        let connection = self.table.at(slot);
        connection.phase = Phase::Upgraded;
        connection.encoding = encoding.unwrap_or(Encoding::Json);
    }

    fn refuse_upgrade(&mut self, slot: u32, status: u16, reason: &str, headers: &[(&str, &str)]) {
        self.counters.count(Metric::UpgradesRefused);
        let from = self.actions.output.len();
        websocket::write_refusal(&mut self.actions.output, status, reason, headers);
        self.write(slot, from);
        self.shut(slot, Close::AfterFlush);
    }

    fn hand_over(&mut self, slot: u32, bytes: &[u8]) {
        self.counters.count(Metric::HandedOver);
        self.gone(slot);
        self.table.free(slot);
        self.actions.handed_over.push((slot, bytes.to_vec()));
    }

    fn message(&mut self, slot: u32, kind: MessageKind, bytes: &[u8]) {
        let encoding = self.table.at(slot).encoding;
        if (kind == MessageKind::Binary) != encoding.is_binary() {
            let reason = if encoding.is_binary() {
                "this connection speaks CBOR in binary frames"
            } else {
                "this connection speaks JSON in text frames"
            };
            return self.close(slot, CloseCode::UnsupportedData, reason);
        }
        for request in protocol::decode(encoding, bytes, self.settings.payload_bytes_max) {
            self.counters.count(Metric::Commands);
            fault::point();
            match request {
                Ok(request) => self.command(slot, request),
                Err(error) => {
                    let id = error.id.map(RequestId::nonzero);
                    match self.within_rate(slot, 1) {
                        Ok(()) => self.refuse(slot, id, error.refusal),
                        Err(wait) => self.refuse(slot, id, too_many(wait)),
                    }
                    if error.fatal {
                        self.close(slot, CloseCode::BadMessage, "what came cannot be read");
                    }
                }
            }
            if self.table.at(slot).phase == Phase::Closing {
                return;
            }
        }
    }

    fn command(&mut self, slot: u32, request: Request<'_>) {
        let id = request.id.map(RequestId::nonzero);
        if let Err(wait) = self.within_rate(slot, weight(&request.command)) {
            return self.refuse(slot, id, too_many(wait));
        }
        if self.table.at(slot).phase == Phase::Upgraded {
            return match request.command {
                Command::Connect { token } => self.connect(slot, id, token.as_ref().map(|token| &*token.0)),
                _ => self.close(slot, CloseCode::BadMessage, "the first command must be connect"),
            };
        }
        if self.table.at(slot).expires() <= self.now.wall {
            return self.close(slot, CloseCode::Unauthorised, "the token has expired");
        }
        self.dispatch(slot, id, request.command);
    }

    fn dispatch(&mut self, slot: u32, id: Option<NonZeroU64>, command: Command<'_>) {
        let device = self.table.at(slot).device();
        let origin = self.origin(slot, id);
        let (conversation, act) = match command {
            Command::Connect { .. } => {
                let refusal = Refusal::new(
                    ErrorCode::BadRequest,
                    "connect: once only, and this connection is connected",
                );
                return self.refuse(slot, id, refusal);
            }
            Command::Refresh { token } => return self.refresh(slot, id, &token.0),
            Command::Ping => return self.reply(slot, id, Ok(Answer::Ping)),
            Command::Send { conversation, client_id, payload } => {
                (conversation, Act::Send { origin, from: device, client_id, payload })
            }
            Command::SendPassing { conversation, payload } => {
                (conversation, Act::Pass { origin, from: device, payload })
            }
            Command::Recv { conversation, seq } => (conversation, Act::Receive { origin, device, seq }),
            Command::Read { conversation, seq } => (conversation, Act::Read { origin, device, seq }),
            Command::Sync { conversation, after, limit } => {
                (conversation, Act::Sync { origin, user: device.user, after: after.max(Seq::ZERO), limit })
            }
        };
        self.submit(Input::Chat { conversation, act });
    }

    fn connect(&mut self, slot: u32, id: Option<NonZeroU64>, token: Option<&str>) {
        let given = self.table.opening(slot).and_then(|opening| opening.identity);
        let identity = match token {
            Some(token) => auth::verify(&self.settings.keys, &self.settings.rules, token, self.now.wall),
            None => match given {
                Some(identity) if identity.expires_at <= self.now.wall => Err(TokenError::Expired),
                Some(identity) => Ok(identity),
                None => {
                    let refusal = Refusal::new(
                        ErrorCode::Unauthorised,
                        "connect: token is missing, and the upgrade brought none",
                    );
                    return self.unauthorised(slot, id, refusal);
                }
            },
        };
        match identity {
            Ok(identity) => self.connected(slot, id, identity),
            Err(error) => self.unauthorised(slot, id, token_refusal(error)),
        }
    }

    fn connected(&mut self, slot: u32, id: Option<NonZeroU64>, identity: Identity) {
        self.counters.count(Metric::Authenticated);
        self.authenticated(slot);
        let connection = self.table.at(slot);
        connection.phase = Phase::Open;
        connection.set_device(identity.device);
        connection.set_expires(identity.expires_at);
        if let Some(opening) = self.table.opening(slot) {
            opening.session = Some(identity.session);
        }
        let (origin, connection) = (self.origin(slot, id), self.table.id(slot));
        self.submit(Input::Connect { origin, connection, device: identity.device });
    }

    fn refresh(&mut self, slot: u32, id: Option<NonZeroU64>, token: &str) {
        match auth::verify(&self.settings.keys, &self.settings.rules, token, self.now.wall) {
            Ok(identity) if identity.device == self.table.at(slot).device() => {
                let connection = self.table.at(slot);
                connection.set_expires(identity.expires_at);
                let expires_at = connection.expires();
                self.reply(slot, id, Ok(Answer::Refresh { expires_at }));
            }
            Ok(_) => {
                let refusal =
                    Refusal::new(ErrorCode::Unauthorised, "refresh: the token is for another user or device");
                self.refuse(slot, id, refusal);
            }
            // The session goes on until its own token expires.
            Err(error) => self.refuse(slot, id, token_refusal(error)),
        }
    }

    fn unauthorised(&mut self, slot: u32, id: Option<NonZeroU64>, refusal: Refusal<'static>) {
        self.counters.count(Metric::AuthenticationFailed);
        let reason = refusal.message.clone();
        self.refuse(slot, id, refusal);
        self.close(slot, CloseCode::Unauthorised, &reason);
    }

    /// Counts commands or control frames against the connection's rate. Far above it, the connection is closed.
    fn within_rate(&mut self, slot: u32, weight: u32) -> Result<(), model::Span> {
        let connection = self.table.at(slot);
        let Err(TooFast { wait, far }) = self.pace.take(&mut connection.rate, self.now.mono, weight) else {
            return Ok(());
        };
        if far && connection.phase != Phase::Closing {
            self.close(slot, CloseCode::RateLimited, "far too many commands in too short a time");
        }
        Err(wait)
    }

    fn closed_by_peer(&mut self, slot: u32, code: Option<u16>) {
        let from = self.actions.output.len();
        websocket::encode_close(&mut self.actions.output, code.unwrap_or(1000), "", None);
        self.write(slot, from);
        self.shut(slot, Close::AfterFlush);
    }

    fn refuse(&mut self, slot: u32, id: Option<NonZeroU64>, refusal: Refusal<'_>) {
        self.counters.count(Metric::CommandsRefused);
        self.reply(slot, id, Err(refusal));
    }

    pub(crate) fn reply(
        &mut self,
        slot: u32,
        id: Option<NonZeroU64>,
        outcome: Result<Answer<'_>, Refusal<'_>>,
    ) {
        if id.is_none() && outcome.is_ok() {
            return;
        }
        let id = id.and_then(|id| RequestId::new(id.get()));
        let reply = Reply { id, outcome };
        self.frame(slot, 256, |encoding, out| protocol::encode_reply(encoding, out, &reply));
    }
}

/// How many commands one counts for. A page of the log costs the store and the socket far more than anything else does.
fn weight(command: &Command<'_>) -> u32 {
    match command {
        Command::Sync { limit, .. } => 1 + limit / SYNC_ENTRIES_PER_COMMAND,
        _ => 1,
    }
}

fn too_many(wait: model::Span) -> Refusal<'static> {
    let mut refusal = Refusal::new(ErrorCode::RateLimited, "too many commands in too short a time");
    refusal.retry_after = wait;
    refusal
}

fn token_refusal(error: TokenError) -> Refusal<'static> {
    let code = if error == TokenError::Expired { ErrorCode::TokenExpired } else { ErrorCode::Unauthorised };
    Refusal::new(code, error.to_string())
}
