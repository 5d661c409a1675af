//! What is done for every request, whatever it asks for: framing that has one reading only, the deadline of the
//! answer, cross-origin rules, security headers, counting and the access log.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST,
    ORIGIN, REFERRER_POLICY, TRANSFER_ENCODING, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use protocol::ErrorCode;

use crate::problem::Problem;
use crate::state::Shared;

/// Answers one request.
pub async fn answer(
    shared: &Shared,
    router: &TowerToHyperService<axum::Router>,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let began = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let origin = allowed_origin(shared, request.headers());
    let mut response = match framed(&request) {
        Err(problem) => problem.into_response(),
        Ok(()) if is_preflight(&request) && origin.is_some() => preflight(),
        Ok(()) => {
            let answer = tokio::time::timeout(shared.state.limits.answer_deadline, router.call(request));
            match answer.await {
                Ok(Ok(response)) => response,
                Err(_) => Problem::new(
                    ErrorCode::Internal,
                    "there was no answer in time; whether it was done is not known",
                )
                .into_response(),
            }
        }
    };
    let headers = response.headers_mut();
    secure(headers);
    if !shared.state.origins.is_empty() {
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    let status = response.status();
    shared.counters.answered(status).fetch_add(1, Ordering::Relaxed);
    // The path only: what people put into queries is not for logs.
    let micros = began.elapsed().as_micros() as u64;
    tracing::debug!(%peer, %method, path = %path.escape_debug(), status = status.as_u16(), micros, "answered");
    Ok(response)
}

/// Whether everybody on the way agrees where this request ends and for whom it is.
fn framed(request: &Request<Incoming>) -> Result<(), Problem> {
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Err(Problem::bad_request("the request must have exactly one header Host").closing());
    }
    if !request.uri().path().starts_with('/') {
        return Err(Problem::bad_request("the request's target must be a path that begins with /").closing());
    }
    // Together with a length this is how requests are smuggled past proxies, and nobody needs it for bodies this small.
    if request.headers().contains_key(TRANSFER_ENCODING) {
        return Err(Problem::bad_request(
            "send the body with a Content-Length, not with a Transfer-Encoding",
        )
        .status(StatusCode::LENGTH_REQUIRED)
        .closing());
    }
    Ok(())
}

/// The request's origin, when its pages may read answers.
fn allowed_origin(shared: &Shared, headers: &HeaderMap) -> Option<HeaderValue> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = origins.next()?;
    let allowed = shared.state.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes());
    (allowed && origins.next().is_none()).then(|| origin.clone())
}

fn is_preflight(request: &Request<Incoming>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("authorization, content-type"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Headers of every answer; a page that needs to do more has set its own policy.
fn secure(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
}
