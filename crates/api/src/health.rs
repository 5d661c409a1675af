//! Whether the server lives, whether it is ready, and how it is described.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::problem::Problem;
use crate::state::Shared;

/// The description of everything public (OpenAPI 3.1).
pub const OPENAPI: &str = include_str!("openapi.json");

/// How long the shards have to make a turn.
pub(crate) const TURN_WITHIN: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    store_writable: bool,
    shards_turning: bool,
    stopping: bool,
}

/// `GET /livez`: this process answers.
pub async fn live() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], "ok\n").into_response()
}

/// `GET /readyz`: whether work should be sent here, and if not, why.
pub async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let handle = &shared.state.handle;
    let shards_turning = handle.shards_turn(TURN_WITHIN).await;
    let store_writable = handle.store_writable();
    let stopping = shared.stopping.load(Ordering::Relaxed);
    let ready = shards_turning && store_writable && !stopping;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let readiness = Readiness { ready, store_writable, shards_turning, stopping };
    let body = serde_json::to_vec(&readiness).expect("booleans always serialise");
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// `GET /openapi.json`
pub async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// `/v1/socket` on a connection that has carried another request before: it has left the shard that speaks WebSocket.
pub async fn socket_elsewhere() -> Problem {
    Problem::bad_request("open a connection of its own for the socket: this one has carried other requests")
        .status(StatusCode::MISDIRECTED_REQUEST)
        .closing()
}
