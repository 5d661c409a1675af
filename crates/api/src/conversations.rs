//! Conversations over REST.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::{Act, Answer, Input, Origin};
use model::limits::GROUP_MEMBERS_MAX;
use model::{
    ConversationId, ConversationKind, ConversationListing, ConversationSummary, Receipt, UserId, direct_id,
};
use protocol::ErrorCode;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use crate::body::{Json, Members, Nothing, text};
use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::Shared;

/// What is to be made.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    kind: Kind,
    members: Members,
}

struct Kind(ConversationKind);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        let read = |text: &str| match text {
            "direct" => Some(Kind(ConversationKind::Direct)),
            "group" => Some(Kind(ConversationKind::Group)),
            _ => None,
        };
        text(deserializer, "`kind` to be \"direct\" or \"group\"", read)
    }
}

#[derive(Serialize)]
struct Shown {
    id: String,
    kind: &'static str,
    members: Vec<String>,
    head: u64,
}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    shown: Shown,
    receipts: Vec<ShownReceipt>,
}

#[derive(Serialize)]
struct ShownReceipt {
    user: String,
    delivered: u64,
    read: u64,
}

#[derive(Serialize)]
struct List {
    conversations: Vec<Listed>,
}

impl Shown {
    fn new(summary: &ConversationSummary) -> Shown {
        Shown {
            id: summary.id.to_string(),
            kind: match summary.kind {
                ConversationKind::Direct => "direct",
                ConversationKind::Group => "group",
            },
            members: summary.members.iter().map(UserId::to_string).collect(),
            head: summary.head.0,
        }
    }
}

impl Listed {
    fn new(listing: &ConversationListing) -> Listed {
        let receipt = |receipt: &Receipt| ShownReceipt {
            user: receipt.user.to_string(),
            delivered: receipt.delivered.0,
            read: receipt.read.0,
        };
        Listed {
            shown: Shown::new(&listing.summary),
            receipts: listing.receipts.iter().map(receipt).collect(),
        }
    }
}

/// `POST /v1/conversations`
pub async fn create(
    State(shared): State<Arc<Shared>>,
    Caller(by): Caller,
    Json(wanted): Json<Wanted>,
) -> Result<Response, Problem> {
    let kind = wanted.kind.0;
    let members = members(by, kind, wanted.members.0)?;
    let conversation = match kind {
        ConversationKind::Direct => direct_id(members[0], members[1]),
        ConversationKind::Group => ConversationId(Uuid::new_v4().into_bytes()),
    };
    let make = |origin| Input::Chat { conversation, act: Act::Create { origin, by, kind, members } };
    let (summary, fresh) = changed(&shared, make).await?;
    let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &Shown::new(&summary)))
}

/// The asker and the others, sorted and each once.
fn members(by: UserId, kind: ConversationKind, mut members: Vec<UserId>) -> Result<Vec<UserId>, Problem> {
    members.push(by);
    members.sort_unstable();
    members.dedup();
    match (kind, members.len()) {
        (ConversationKind::Direct, 2) | (ConversationKind::Group, 1..=GROUP_MEMBERS_MAX) => Ok(members),
        (ConversationKind::Direct, _) => Err(Problem::bad_request(
            "`members` of a direct conversation must name exactly one user other than yourself",
        )),
        (ConversationKind::Group, _) => Err(Problem::bad_request(format!(
            "`members` and yourself are more than the {GROUP_MEMBERS_MAX} users a group may have"
        ))),
    }
}

/// `GET /v1/conversations`
pub async fn list(State(shared): State<Arc<Shared>>, Caller(user): Caller) -> Result<Response, Problem> {
    match shared.state.handle.request(|origin| Input::ListConversations { origin, user }).await? {
        Answer::Conversations(all) => {
            let conversations = all.iter().map(Listed::new).collect();
            Ok(json(StatusCode::OK, &List { conversations }))
        }
        _ => Err(strange()),
    }
}

/// `POST /v1/conversations/{id}/members/{user}`
pub async fn add(
    State(shared): State<Arc<Shared>>,
    Caller(by): Caller,
    path: Result<Path<(String, String)>, PathRejection>,
    _: Nothing,
) -> Result<Response, Problem> {
    let (conversation, user) = member_named(path)?;
    let make = |origin| Input::Chat { conversation, act: Act::Add { origin, by, user } };
    let (summary, _) = changed(&shared, make).await?;
    Ok(json(StatusCode::OK, &Shown::new(&summary)))
}

/// `DELETE /v1/conversations/{id}/members/{user}`
pub async fn remove(
    State(shared): State<Arc<Shared>>,
    Caller(by): Caller,
    path: Result<Path<(String, String)>, PathRejection>,
    _: Nothing,
) -> Result<StatusCode, Problem> {
    let (conversation, user) = member_named(path)?;
    go(&shared, conversation, by, user).await
}

/// `DELETE /v1/conversations/{id}/members/me`
pub async fn leave(
    State(shared): State<Arc<Shared>>,
    Caller(by): Caller,
    path: Result<Path<String>, PathRejection>,
    _: Nothing,
) -> Result<StatusCode, Problem> {
    let Path(id) = path.map_err(not_text)?;
    go(&shared, parse("id", &id)?, by, by).await
}

async fn go(
    shared: &Shared,
    conversation: ConversationId,
    by: UserId,
    user: UserId,
) -> Result<StatusCode, Problem> {
    let make = |origin| Input::Chat { conversation, act: Act::Remove { origin, by, user } };
    changed(shared, make).await.map(|_| StatusCode::NO_CONTENT)
}

async fn changed(
    shared: &Shared,
    make: impl FnOnce(Origin) -> Input,
) -> Result<(Arc<ConversationSummary>, bool), Problem> {
    match shared.state.handle.request(make).await? {
        Answer::Conversation { summary, fresh } => Ok((summary, fresh)),
        _ => Err(strange()),
    }
}

fn member_named(
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<(ConversationId, UserId), Problem> {
    let Path((id, user)) = path.map_err(not_text)?;
    Ok((parse("id", &id)?, parse("user", &user)?))
}

fn parse<T: FromStr>(name: &str, text: &str) -> Result<T, Problem> {
    let detail = || format!("`{name}` in the address is not a UUID in its hyphenated form of 36 characters");
    text.parse().map_err(|_| Problem::bad_request(detail()))
}

fn not_text(_: PathRejection) -> Problem {
    Problem::bad_request("the address is not percent-encoded UTF-8")
}

fn strange() -> Problem {
    debug_assert!(false, "the rules answer what was asked");
    Problem::new(ErrorCode::Internal, "the rules gave an answer to another question")
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("strings and numbers always serialise");
    (status, [("content-type", "application/json")], body).into_response()
}
