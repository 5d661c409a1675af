//! One message on its way through a server on which every part of the way lies on another shard, so that the trace shows all of it.

use std::cell::RefCell;
use std::rc::Rc;

use domain::{Act, Input, Origin};
use model::{ConversationKind, ShardId, Span, partition_of_conversation, partition_of_user};
use shard::owner_of;

use crate::names::Registry;
use crate::plan::Plan;
use crate::random::Random;
use crate::tamper::Tamper;
use crate::trace::Trace;
use crate::violation::Violation;
use crate::world::World;

/// The sender is connected here.
const SENDER: ShardId = ShardId(0);
/// The conversation is owned here.
const CONVERSATION: ShardId = ShardId(1);
/// Both users are owned here, by one partition.
const USERS: ShardId = ShardId(2);
/// The receiver is connected here.
const RECEIVER: ShardId = ShardId(3);

/// The trace of one message, from the sender's socket to the receiver's `recv` and the receipt for the sender.
///
/// # Errors
/// When something of the server is broken.
pub fn route_of_a_message() -> Result<Vec<String>, Violation> {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let mut world = world(&lines);
    world.calm = true;
    world.clients[0].settle_down(SENDER);
    world.clients[1].settle_down(RECEIVER);
    let conversation = {
        let mut random = Random::new(1);
        let registry = Registry { hash_key: world.hash_key(), last: 255 };
        let ids = std::iter::repeat_with(|| registry.conversation(&mut random, 1));
        let mut ids =
            ids.filter(|id| owner_of(partition_of_conversation(&registry.hash_key, *id), 4) == CONVERSATION);
        ids.next().expect("a quarter of all ids are there")
    };
    let act = Act::Create {
        origin: Origin::Outside { shard: SENDER, ticket: 0 },
        by: world.users[0],
        kind: ConversationKind::Direct,
        members: world.users.clone(),
    };
    world.office.expect_creation(0, world.users[0], conversation);
    world.sides[0].outside.push_back(Input::Chat { conversation, act });
    world.rest()?;
    lines.borrow_mut().clear();
    let (sender, mut around) = world.around(0);
    sender.write(conversation, &mut around);
    // Not long enough for the conversation to be settled.
    for _ in 0..40 {
        world.round()?;
        world.pass(Span(1));
    }
    drop(world);
    Ok(lines.take())
}

/// A world whose two users belong to one partition of the right shard.
fn world(lines: &Rc<RefCell<Vec<String>>>) -> World {
    let mut seeds = 0..;
    loop {
        let random = Random::new(seeds.next().expect("numbers do not end"));
        let lines = Rc::clone(lines);
        let trace = Trace::new(Some(Box::new(move |line| lines.borrow_mut().push(line.to_owned()))));
        let world = World::new(Plan::quiet(4), random, trace, Tamper::default());
        let owners = [0, 1].map(|user| partition_of_user(&world.hash_key(), world.users[user]));
        if owners[0] == owners[1] && owner_of(owners[0], 4) == USERS {
            return world;
        }
    }
}
