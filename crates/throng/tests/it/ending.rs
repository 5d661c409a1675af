//! How a server ends while people chat: killed, or asked to stop. Nothing that was acknowledged is lost (D1, D3 to D6, D10).

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use protocol::Encoding;

use crate::chance::Chance;
use crate::client::{Client, Heard, PATIENCE};
use crate::kill::{self, sound};
use crate::run::Place;
use crate::server::{Start, token};
use crate::traffic::{Traffic, agree, chat, pairs};

#[test]
fn d1_killed_at_any_moment_it_loses_nothing() {
    let plan = kill::Plan { rounds: 20, size: 50, pause: Duration::from_millis(20) };
    let report = kill::run(&plan, &mut Chance::new(), |line| eprintln!("{line}"));
    eprintln!("{report:?}");
}

#[test]
fn d10_asked_to_stop_it_sends_its_clients_away_and_loses_nothing() {
    /// With so many quiet ones the default drain takes its time, so that the others are sent away in the middle of a word.
    const QUIET: usize = 60;
    let place = Place::new();
    let start = Start::new(&place).generous();
    let mut server = start.start();
    let traffic = Traffic::new(server.address);
    let people = pairs(&server, 3);
    let mut quiet: Vec<Client> = (0..QUIET)
        .map(|n| Client::open(server.address, &token("quiet", n as u32), Encoding::Json).expect("let in"))
        .collect();
    let mut silent = TcpStream::connect(server.address).expect("accepted");
    let (people, server) = chat(&traffic, people, || {
        traffic.await_answers(200);
        server.ask_to_stop();
        let (status, took) = server.wait(Duration::from_secs(30));
        assert!(status.success(), "{status}");
        eprintln!("it took {took:?} to stop");
        sound(&place);
        for client in &mut quiet {
            sent_away(client);
        }
        silent.set_read_timeout(Some(PATIENCE)).expect("a socket of ours");
        assert!(matches!(silent.read(&mut [0]), Ok(0) | Err(_)), "nobody who has said nothing holds it up");
        let server = start.start();
        traffic.await_answers(20);
        traffic.stop_sending();
        server
    });
    agree(&people);
    for person in &people {
        let [(code, window)] = person.farewells[..] else { panic!("one farewell: {:?}", person.farewells) };
        assert_eq!(code, 4501);
        assert!(window.min < window.max, "a window to come back in: {window:?}");
    }
    server.stop();
}

/// The last that a client hears: why, when to come back, the close frame, the end.
fn sent_away(client: &mut Client) {
    let window = client.await_heard(|heard| match heard {
        Heard::Disconnect(code, window) => {
            assert_eq!(code, 4501);
            Some(window)
        }
        _ => None,
    });
    assert!(window.min < window.max, "a window to come back in: {window:?}");
    client.await_heard(|heard| (heard == Heard::Closed(Some(4501))).then_some(()));
    assert!(client.hear(PATIENCE).is_err(), "then the connection ends");
}
