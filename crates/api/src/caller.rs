//! Who asks: the bearer token of a request.

use std::sync::Arc;

use auth::TokenError;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use model::UserId;
use protocol::ErrorCode;

use crate::problem::Problem;
use crate::state::{Shared, wall};

/// The user of a valid token.
pub struct Caller(pub UserId);

impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Caller, Problem> {
        // Addresses end up in logs, and no request here has parameters.
        if parts.uri.query().is_some() {
            return Err(Problem::bad_request(
                "this address takes no query parameters; a token belongs in the header Authorization",
            ));
        }
        let token = bearer(parts)?;
        match auth::verify(&shared.state.keys, &shared.state.rules, token, wall()) {
            Ok(identity) => Ok(Caller(identity.device.user)),
            Err(error @ TokenError::Expired) => {
                Err(Problem::token(ErrorCode::TokenExpired, error.to_string(), true))
            }
            Err(error) => Err(Problem::token(ErrorCode::Unauthorised, error.to_string(), true)),
        }
    }
}

/// The one token of a request. Two headers could mean one thing to a proxy and another one here.
fn bearer(parts: &Parts) -> Result<&str, Problem> {
    let refused = |detail, presented| Err(Problem::token(ErrorCode::Unauthorised, detail, presented));
    let mut values = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return refused("this request needs `Authorization: Bearer TOKEN`", false);
    };
    if values.next().is_some() {
        return refused("the request has more than one Authorization", true);
    }
    let token = value.to_str().ok().and_then(|value| value.split_once(' '));
    match token {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim_start_matches(' ')),
        _ => refused("Authorization must be `Bearer TOKEN`", false),
    }
}
