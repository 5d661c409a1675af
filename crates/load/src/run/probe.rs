//! One client before the others: whether the server is there, and lets somebody in.
//!
//! What keeps it out would keep all of them out, so it is told in one sentence and no run begins.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use model::Mono;
use protocol::ErrorCode;
use websocket::Pool;

use super::address::Address;
use super::plan::Plan;
use crate::client::{Client, Ending, SOCKET_PATH, Said, Stage};

/// Why nobody would be let in.
#[derive(Debug)]
pub enum ProbeError {
    /// There is no server.
    Unreachable(Box<Address>, io::Error),
    /// There is one, but it does not answer.
    Silent(Box<Address>, Duration),
    /// There is one, and it does not let the first user in.
    Refused(Box<Address>, Ending),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Unreachable(address, _) => {
                write!(f, "no server is reached at {}: start one, or correct --url", address.url)
            }
            ProbeError::Silent(address, patience) => {
                write!(f, "what listens at {} did not let a client in within {patience:?}", address.url)
            }
            ProbeError::Refused(address, ending) => match ending {
                Ending::NotUpgraded(404) => write!(
                    f,
                    "the server at {} has no socket at {}: that of throng is at {SOCKET_PATH}; correct --url",
                    address.url, address.path
                ),
                Ending::NotUpgraded(status) => write!(
                    f,
                    "what listens at {} answered the upgrade with {status}: is it throng, and not something before it?",
                    address.url
                ),
                Ending::Refused(ErrorCode::TokenExpired, _) => write!(
                    f,
                    "the server at {} says that the token of the first user has expired: make new ones with `throng seed --tokens`",
                    address.url
                ),
                Ending::Refused(ErrorCode::Unauthorised, why) => write!(
                    f,
                    "the server at {} refuses the token of the first user ({why}): it must be signed with that server's key; make tokens \
                     with `throng seed --tokens` and the --data or --config of that server",
                    address.url
                ),
                ending => write!(f, "the server at {} does not let the first user in: {ending}", address.url),
            },
        }
    }
}

impl std::error::Error for ProbeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ProbeError::Unreachable(_, cause) => Some(cause),
            _ => None,
        }
    }
}

/// Connects as the first user, and leaves.
///
/// # Errors
/// When that does not succeed.
pub fn probe(plan: &Plan, token: &str) -> Result<(), ProbeError> {
    let (address, patience) = (&plan.address, plan.timeout);
    let unreachable = |cause| ProbeError::Unreachable(Box::new(address.clone()), cause);
    let mut stream = TcpStream::connect_timeout(&address.server, patience).map_err(unreachable)?;
    stream.set_read_timeout(Some(Duration::from_millis(50))).map_err(unreachable)?;
    let (mut client, mut pool, mut out) = (Client::new(plan.encoding), Pool::default(), Vec::new());
    client.open(&address.host, &address.path, token, &mut out);
    let (end, mut buffer) = (Instant::now() + patience, [0; 16 * 1024]);
    while client.stage() != Stage::Open {
        let mut over = stream.write_all(&out).is_err().then_some(Ending::Broken);
        out.clear();
        match stream.read(&mut buffer) {
            Ok(0) => over = Some(Ending::Broken),
            Ok(count) => {
                client.received(&mut pool, Mono(0), &mut buffer[..count], &mut out, &mut |said, _| {
                    if let Said::Over(why) = said {
                        over.get_or_insert(why);
                    }
                })
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(_) => over = Some(Ending::Broken),
        }
        if let Some(why) = over {
            return Err(ProbeError::Refused(Box::new(address.clone()), why));
        }
        if Instant::now() >= end {
            return Err(ProbeError::Silent(Box::new(address.clone()), patience));
        }
    }
    out.clear();
    client.leave(&mut out);
    let _ = stream.write_all(&out);
    Ok(())
}
