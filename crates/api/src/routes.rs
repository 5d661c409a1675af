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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::health::OPENAPI;

    fn description() -> Value {
        serde_json::from_str(OPENAPI).expect("the description is JSON")
    }

    /// Every operation: method, path, and what is said of it.
    fn operations(description: &Value) -> Vec<(String, String, Value)> {
        let paths = description["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, item)| {
            let item = item.as_object().expect("a path item");
            item.iter().map(|(method, operation)| (method.clone(), path.clone(), operation.clone()))
        });
        operations.collect()
    }

    /// Follows a reference within the description, if it is one.
    fn resolved<'d>(description: &'d Value, value: &'d Value) -> &'d Value {
        match value["$ref"].as_str() {
            Some(target) => {
                let pointer = target.strip_prefix('#').expect("references stay in the description");
                description.pointer(pointer).unwrap_or_else(|| panic!("{target} is there"))
            }
            None => value,
        }
    }

    fn each_value(value: &Value, visit: &mut dyn FnMut(&Value)) {
        visit(value);
        match value {
            Value::Array(list) => list.iter().for_each(|inner| each_value(inner, visit)),
            Value::Object(map) => map.values().for_each(|inner| each_value(inner, visit)),
            _ => {}
        }
    }

    #[test]
    fn the_description_has_every_route_and_no_other() {
        let described: BTreeSet<(String, String)> =
            operations(&description()).into_iter().map(|(method, path, _)| (method, path)).collect();
        let routed: BTreeSet<(String, String)> =
            public().iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
        assert_eq!(described, routed);
    }

    #[test]
    fn the_description_is_whole() {
        let description = description();
        assert_eq!(description["openapi"], "3.1.0");
        assert!(description["info"]["title"].is_string() && description["info"]["version"].is_string());
        let mut referred = BTreeSet::new();
        each_value(&description, &mut |value| {
            resolved(&description, value);
            referred.extend(value["$ref"].as_str().map(str::to_owned));
        });
        for kind in ["schemas", "responses", "parameters"] {
            for name in description["components"][kind].as_object().expect(kind).keys() {
                let reference = format!("#/components/{kind}/{name}");
                assert!(referred.contains(&reference), "{reference} is used");
            }
        }
    }

    #[test]
    fn every_operation_is_described_whole() {
        let description = description();
        let mut ids = BTreeSet::new();
        for (method, path, operation) in operations(&description) {
            let what = format!("{method} {path}");
            let id = operation["operationId"].as_str().expect(&what);
            assert!(ids.insert(id.to_owned()), "{what}: {id} is used once");
            assert!(operation["summary"].is_string(), "{what}");
            let none = Vec::new();
            let parameters = operation["parameters"].as_array().unwrap_or(&none);
            let declared: BTreeSet<&str> = parameters
                .iter()
                .map(|parameter| resolved(&description, parameter)["name"].as_str().expect(&what))
                .collect();
            let in_path: BTreeSet<&str> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(declared, in_path, "{what}");
            let responses = operation["responses"].as_object().expect(&what);
            for (status, response) in responses {
                let status: u16 = status.parse().expect(&what);
                let response = resolved(&description, response);
                assert!(response["description"].is_string(), "{what} {status}");
                if path.starts_with("/v1/conversations") && status >= 400 {
                    assert!(response["content"]["application/problem+json"].is_object(), "{what} {status}");
                }
            }
            if path.starts_with("/v1/conversations") {
                assert!(operation["security"][0]["bearer"].is_array(), "{what} needs a token");
                assert!(
                    ["400", "401", "500", "503"].iter().all(|status| responses.contains_key(*status)),
                    "{what}"
                );
            }
        }
    }
}
