//! A bad network between clients and server: whatever it does to the bytes, nothing that was acknowledged is lost.

use std::time::Duration;

use crate::chance;
use crate::kill::judge;
use crate::proxy::{Nature, Proxy, Trouble};
use crate::run::Place;
use crate::server::Start;
use crate::traffic::{Traffic, chat, crowd};

#[test]
fn d6_through_a_bad_network_everything_arrives_once() {
    // Each connection meets trouble after a few hundred pieces on average.
    through(Nature::bad(), 1_500, |proxy| {
        for trouble in Trouble::ALL {
            assert!(proxy.happened(trouble) > 0, "there was a {trouble:?}");
        }
    });
}

#[test]
fn through_a_slow_network_nobody_comes_back() {
    let devices = 22;
    through(Nature::slow(), 1_000, |proxy| assert_eq!(proxy.connections(), devices));
}

/// A crowd of ten and ten chats through it until so many sends were answered.
fn through(nature: Nature, answers: u64, afterwards: impl FnOnce(&Proxy)) {
    let seed = chance::seed();
    let place = Place::new();
    let start = Start::new(&place).generous();
    let server = start.start();
    let people = crowd(&server, 10);
    let proxy = Proxy::start(server.address, nature, seed);
    let traffic = Traffic::new(proxy.address).pausing(Duration::from_millis(2));
    let (people, ()) = chat(&traffic, people, || {
        traffic.await_answers(answers);
        traffic.stop_sending();
    });
    eprintln!("{} messages, {}", traffic.answered(), proxy.describe());
    afterwards(&proxy);
    judge(&place, &start, server, &people).stop();
}
