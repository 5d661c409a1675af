//! Every address there is, in one table.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, any, delete, get, post};

use crate::problem::Problem;
use crate::state::Shared;
use crate::{conversations, dev, health, metrics};

/// One row of the table.
struct Route {
    method: &'static str,
    path: &'static str,
    handler: MethodRouter<Arc<Shared>>,
}

fn route(method: &'static str, path: &'static str, handler: MethodRouter<Arc<Shared>>) -> Route {
    Route { method, path, handler }
}

/// What the OpenAPI description describes.
fn public() -> Vec<Route> {
    vec![
        route("post", "/v1/conversations", post(conversations::create)),
        route("get", "/v1/conversations", get(conversations::list)),
        route("post", "/v1/conversations/{id}/members/{user}", post(conversations::add)),
        route("delete", "/v1/conversations/{id}/members/{user}", delete(conversations::remove)),
        route("delete", "/v1/conversations/{id}/members/me", delete(conversations::leave)),
        route("get", "/v1/socket", any(health::socket_elsewhere)),
        route("get", "/livez", get(health::live)),
        route("get", "/readyz", get(health::ready)),
        route("get", "/metrics", get(metrics::show)),
        route("get", "/openapi.json", get(health::openapi)),
    ]
}

/// What exists with `--dev` only.
fn dev_only() -> Vec<Route> {
    let mut routes = vec![
        route("post", "/dev/token", post(dev::token)),
        route("post", "/dev/resolve", post(dev::resolve)),
    ];
    routes.extend(dev::FILES.iter().map(|file| route("get", file.path, get(|| async { file.answer() }))));
    routes
}

/// The whole server, without what the guard does for every request.
pub fn router(shared: &Arc<Shared>) -> Router {
    let mut routes = public();
    if shared.state.dev.is_some() {
        routes.extend(dev_only());
    }
    let mut router = Router::new();
    for Route { method, path, handler } in routes {
        tracing::trace!(method, path, "serves");
        router = router.route(path, handler);
    }
    router
        .fallback(|| async { Problem::no_such_page() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(Arc::clone(shared))
}
