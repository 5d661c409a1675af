//! What exists with `--dev` only: the page, and tokens for whoever asks.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use model::UserId;
use protocol::ErrorCode;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use crate::body::{Json, text};
use crate::problem::Problem;
use crate::state::{Dev, Shared, wall};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// What the page may do: everything is its own, and the socket is at its own host under another scheme.
const POLICY: &str = "default-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// One file of the page.
pub struct File {
    pub path: &'static str,
    pub kind: &'static str,
    pub text: &'static str,
}

macro_rules! files {
    ($($path:literal = $file:literal $kind:expr;)*) => {
        /// All that the page consists of.
        pub const FILES: &[File] =
            &[$(File { path: $path, kind: $kind, text: include_str!(concat!("../../../web/", $file)) },)*];
    };
}

files! {
    "/" = "index.html" HTML;
    "/app.js" = "app.js" SCRIPT;
    "/device.js" = "device.js" SCRIPT;
    "/ledger.js" = "ledger.js" SCRIPT;
    "/link.js" = "link.js" SCRIPT;
    "/names.js" = "names.js" SCRIPT;
    "/present.js" = "present.js" SCRIPT;
    "/vault.js" = "vault.js" SCRIPT;
    "/view.js" = "view.js" SCRIPT;
    "/wire.js" = "wire.js" SCRIPT;
    "/style.css" = "style.css" STYLE;
    "/icon.svg" = "icon.svg" IMAGE;
}

impl File {
    pub fn answer(&self) -> Response {
        ([(CONTENT_TYPE, self.kind), (CONTENT_SECURITY_POLICY, POLICY)], self.text).into_response()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenWanted {
    user: Name,
    device: Device,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserWanted {
    name: Name,
}

struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        let read = |text: &str| (1..=255).contains(&text.len()).then(|| Name(text.to_owned()));
        text(deserializer, "a name of 1 to 255 bytes", read)
    }
}

struct Device(u32);

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Device, D::Error> {
        deserializer.deserialize_u64(DeviceNumber)
    }
}

struct DeviceNumber;

impl Visitor<'_> for DeviceNumber {
    type Value = Device;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`device` to be a whole number from 0 to 4294967295")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Device, E> {
        u32::try_from(number).map(Device).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

#[derive(Serialize)]
struct TokenGiven {
    token: String,
    user: String,
    device: u32,
    expires_at: u64,
}

#[derive(Serialize)]
struct UserFound {
    user: String,
}

/// A request of the page itself, or of a program, but not of another page.
pub struct SameSite;

impl FromRequestParts<Arc<Shared>> for SameSite {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<SameSite, Problem> {
        let refused = |detail| Problem::new(ErrorCode::Unauthorised, detail).status(StatusCode::FORBIDDEN);
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| refused("the request has no usable header Host"))?;
        if !is_near(host) && !is_listed(host, &shared.state.origins) {
            return Err(refused(
                "in --dev mode the server must be addressed as localhost, by its IP address, or by the host of an \
                 allowed origin",
            ));
        }
        match is_same_host(&parts.headers, host) {
            true => Ok(SameSite),
            false => Err(refused("pages of another origin get no tokens here")),
        }
    }
}

/// A name that no stranger's page can have: a page whose name was made to point here after it was loaded
/// (DNS rebinding) is of the same host to its browser.
fn is_near(host: &str) -> bool {
    let Ok(authority) = Authority::from_str(host) else { return false };
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || address.parse::<std::net::IpAddr>().is_ok()
}

fn is_listed(host: &str, origins: &[String]) -> bool {
    origins.iter().any(|origin| origin_host(origin) == Some(host))
}

fn is_same_host(headers: &HeaderMap, host: &str) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => true,
        (Some(origin), None) => origin.to_str().ok().and_then(origin_host) == Some(host),
        (Some(_), Some(_)) => false,
    }
}

fn origin_host(origin: &str) -> Option<&str> {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
}

/// `POST /dev/token`: makes anybody anybody.
pub async fn token(
    State(shared): State<Arc<Shared>>,
    _: SameSite,
    Json(wanted): Json<TokenWanted>,
) -> Result<Response, Problem> {
    let Some(Dev { signing, audience, issuer, token_lifetime }) = &shared.state.dev else {
        return Err(Problem::no_such_page());
    };
    let issued_at = wall();
    let session = Uuid::new_v4().to_string();
    let grant = auth::Grant {
        user: &wanted.user.0,
        device: wanted.device.0,
        session: &session,
        audience,
        issuer: issuer.as_deref(),
        issued_at,
        lifetime: *token_lifetime,
    };
    let token = auth::mint(signing, &grant);
    // Both are cut down to whole seconds in the token.
    let expires_at = (issued_at.0 / 1_000 + token_lifetime.0 / 1_000) * 1_000;
    let user = auth::user_id(&wanted.user.0).to_string();
    Ok(json(&TokenGiven { token, user, device: wanted.device.0, expires_at }))
}

/// `POST /dev/resolve`: the user of a name.
pub async fn resolve(_: SameSite, Json(wanted): Json<UserWanted>) -> Response {
    let user: UserId = auth::user_id(&wanted.name.0);
    json(&UserFound { user: user.to_string() })
}

fn json(value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("strings and numbers always serialise");
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}
