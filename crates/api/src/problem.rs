//! Errors as HTTP tells them: `application/problem+json` (RFC 9457), with the code and name of the one table.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::Refusal;
use protocol::ErrorCode;
use serde::Serialize;

/// What a client is asked to wait before it repeats something temporary.
const RETRY_AFTER_MS: u64 = 1_000;
/// Longest `detail`, in bytes: it may repeat what the client sent.
const DETAIL_BYTES_MAX: usize = 256;
const CONTENT_KIND: &str = "application/problem+json";

/// Why a request was not done.
#[derive(Debug)]
pub struct Problem {
    code: ErrorCode,
    status: StatusCode,
    detail: Cow<'static, str>,
    header: Option<(HeaderName, HeaderValue)>,
}

#[derive(Serialize)]
struct Members<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: u16,
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl Problem {
    /// A row of the table, with the status it has there.
    pub fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Problem {
        let status = StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Problem { code, status, detail: detail.into(), header: None }
    }

    pub fn bad_request(detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(ErrorCode::BadRequest, detail)
    }

    /// The token is missing, or refused for this reason.
    pub fn token(code: ErrorCode, detail: impl Into<Cow<'static, str>>, presented: bool) -> Problem {
        // RFC 6750, section 3.1: no error code for a request without a token.
        let challenge = if presented { "Bearer error=\"invalid_token\"" } else { "Bearer" };
        Problem::new(code, detail).header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// What HTTP has a status of its own for.
    pub fn status(mut self, status: StatusCode) -> Problem {
        self.status = status;
        self
    }

    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.header = Some((name, value));
        self
    }

    /// The rest of the connection is not to be trusted, or not worth waiting for.
    pub fn closing(self) -> Problem {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }

    pub fn no_such_page() -> Problem {
        Problem::new(ErrorCode::NotFound, "there is nothing at this address")
    }

    /// `Allow` is added by the router, which knows.
    pub fn method_not_allowed() -> Problem {
        Problem::bad_request("this address does not take this method; the header Allow names those it takes")
            .status(StatusCode::METHOD_NOT_ALLOWED)
    }

    fn shortened(&self) -> &str {
        &self.detail[..self.detail.floor_char_boundary(DETAIL_BYTES_MAX)]
    }
}

impl From<Refusal> for Problem {
    fn from(why: Refusal) -> Problem {
        let code = match why {
            Refusal::BadRequest(_) => ErrorCode::BadRequest,
            Refusal::NotMember => ErrorCode::NotMember,
            Refusal::NotFound(_) => ErrorCode::NotFound,
            Refusal::ClientIdReused => ErrorCode::ClientIdReused,
            Refusal::ReadOnly => ErrorCode::ReadOnly,
            Refusal::Overloaded(_) => ErrorCode::Overloaded,
            Refusal::Internal(_) => ErrorCode::Internal,
        };
        Problem::new(code, why.to_string())
    }
}

impl Problem {
    fn retry_after_ms(&self) -> Option<u64> {
        self.code.temporary().then_some(RETRY_AFTER_MS)
    }

    fn body(&self) -> Vec<u8> {
        let members = Members {
            r#type: "about:blank",
            title: self.code.name(),
            status: self.status.as_u16(),
            detail: self.shortened(),
            code: self.code.code(),
            name: self.code.name(),
            retry_after_ms: self.retry_after_ms(),
        };
        serde_json::to_vec(&members).expect("strings and numbers always serialise")
    }

    /// The bytes of an answer without a request, after which the connection is closed.
    pub fn into_last_answer(self) -> Vec<u8> {
        let body = self.body();
        let retry_after = self.retry_after_ms().unwrap_or(0).div_ceil(1_000);
        let mut answer = format!(
            "HTTP/1.1 {}\r\nContent-Type: {CONTENT_KIND}\r\nContent-Length: {}\r\nRetry-After: {retry_after}\r\n\
             Connection: close\r\n\r\n",
            self.status,
            body.len()
        )
        .into_bytes();
        answer.extend_from_slice(&body);
        answer
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT_KIND));
        if let Some(wait) = self.retry_after_ms() {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.div_ceil(1_000)));
        }
        if let Some((name, value)) = self.header {
            headers.insert(name, value);
        }
        response
    }
}
