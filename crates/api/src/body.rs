//! Request bodies: JSON in its one reading, or nothing.
//!
//! What serde leaves open is closed here: a body is an object and never the list of its values; a name that comes twice
//! or is not known is refused, by name; a value of another type is refused with what it should be.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Bytes;
use model::UserId;
use model::limits::GROUP_MEMBERS_MAX;
use protocol::ErrorCode;
use serde::de::{DeserializeOwned, Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::problem::Problem;
use crate::state::{BODY_BYTES_MAX, Shared};

/// A JSON object of this shape.
pub struct Json<T>(pub T);

/// No body.
pub struct Nothing;

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Json<T>, Problem> {
        let typed = request.headers().get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes()));
        if !typed {
            return Err(Problem::bad_request("the body must be `Content-Type: application/json`")
                .status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        read_object(&read(request, shared).await?).map(Json)
    }
}

impl FromRequest<Arc<Shared>> for Nothing {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Nothing, Problem> {
        match read(request, shared).await?.is_empty() {
            true => Ok(Nothing),
            false => Err(Problem::bad_request("this request takes no body")),
        }
    }
}

/// `application/json`, whatever parameters follow: RFC 8259 gives them no meaning.
fn is_json(value: &[u8]) -> bool {
    let essence = value.split(|&byte| byte == b';').next().unwrap_or(value);
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

async fn read(request: Request, shared: &Shared) -> Result<Bytes, Problem> {
    let too_large = || {
        Problem::new(ErrorCode::TooLarge, format!("the body is longer than {BODY_BYTES_MAX} bytes")).closing()
    };
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    match tokio::time::timeout(shared.state.limits.body_deadline, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::bad_request("the body ends early").closing()),
        Err(_) => Err(Problem::bad_request("the body did not come in time")
            .status(StatusCode::REQUEST_TIMEOUT)
            .closing()),
    }
}

fn read_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::bad_request("the body must be a JSON object"));
    }
    serde_json::from_slice(body).map_err(|error| Problem::bad_request(error.to_string()))
}

/// A value that says what it should have been.
struct Expecting<T, F> {
    what: &'static str,
    read: F,
    of: std::marker::PhantomData<T>,
}

impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Expecting<T, F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let what = self.what;
        // A long text would push what was expected out of the detail.
        let found = if text.len() <= 64 { Unexpected::Str(text) } else { Unexpected::Other("another text") };
        (self.read)(text).ok_or_else(|| E::invalid_value(found, &what))
    }
}

/// Reads a text that `read` understands; otherwise the error says that `what` was expected.
pub fn text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    what: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Expecting { what, read, of: std::marker::PhantomData })
}

/// The users of `members`.
pub struct Members(pub Vec<UserId>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        deserializer.deserialize_seq(ListOfUsers)
    }
}

struct ListOfUsers;

impl<'de> Visitor<'de> for ListOfUsers {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`members` to be a list of UUIDs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(Member(user)) = list.next_element()? {
            if members.len() == GROUP_MEMBERS_MAX {
                return Err(A::Error::custom(format_args!(
                    "`members` names more than {GROUP_MEMBERS_MAX} users"
                )));
            }
            members.push(user);
        }
        Ok(Members(members))
    }
}

struct Member(UserId);

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Member, D::Error> {
        let what = "`members` to hold UUIDs in their hyphenated form of 36 characters";
        text(deserializer, what, |text| UserId::from_str(text).ok()).map(Member)
    }
}
