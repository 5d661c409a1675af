//! The kill loop: a crowd chats while the server is killed at random moments, over and over, and nothing may be lost.
//!
//! Three kinds of moments: in the middle of the traffic; right after a start, so that recovery itself is killed; and while the server
//! takes leave of its clients, having been told to stop.

use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::run::{Outcome, Place};
use crate::server::{Server, Start};
use crate::traffic::{Person, Traffic, agree, chat, crowd, cursors_are_right};

/// Longest time in the traffic before a kill, after the first answers.
const TRAFFIC_MAX: u64 = 700;
/// Longest time between the signal to stop and a kill. The server needs longer to take leave of so many.
const STOPPING_MAX: u64 = 1_000;
/// No round takes so long, unless the server is stuck.
const ROUND_MAX: Duration = Duration::from_secs(20);
/// From the last kill until everything has arrived.
const END_MAX: Duration = Duration::from_secs(120);

/// How it is done.
pub struct Plan {
    /// Kills.
    pub rounds: u32,
    /// Senders, and as many receivers; a multiple of five.
    pub size: u64,
    /// Everybody pauses for so long after each message.
    pub pause: Duration,
}

/// What happened.
#[derive(Debug, Default)]
pub struct Report {
    /// Kills.
    pub kills: u32,
    /// Of them while the server was not ready yet.
    pub early: u32,
    /// Of them while it was stopping.
    pub stopping: u32,
    /// Messages that were answered.
    pub messages: u64,
    /// Devices that took part.
    pub devices: usize,
    /// Connections that came about.
    pub connections: u64,
    /// Sends that were repeated.
    pub repeated: u64,
    /// Those that turned out to be on disk already.
    pub duplicates: u64,
    /// Receipts that were judged.
    pub receipts: u64,
}

/// Kills a server in the middle of traffic and checks everything; panics with what is wrong.
pub fn run(plan: &Plan, chance: &mut Chance, mut tell: impl FnMut(&str)) -> Report {
    let place = Place::new();
    let start = Start::new(&place).generous();
    let mut server = start.start();
    let people = crowd(&server, plan.size);
    let traffic = Traffic::new(server.address).pausing(plan.pause).lasting(ROUND_MAX * plan.rounds + END_MAX);
    let mut report = Report { devices: people.len(), ..Report::default() };
    let (people, server) = chat(&traffic, people, || {
        let mut took = Duration::from_millis(100);
        for round in 1..=plan.rounds {
            let mut when = "in traffic";
            if round % 4 == 3 {
                when = "while it started";
                server.kill();
                report.kills += 1;
                sound(&place);
                server = start.spawn();
                std::thread::sleep(Duration::from_micros(chance.between(0, took.as_micros() as u64)));
                report.early += u32::from(!server.is_ready());
            } else {
                traffic.await_answers(20);
                traffic.wait(Duration::from_millis(chance.between(0, TRAFFIC_MAX)));
            }
            if round % 4 == 0 {
                when = "while it stopped";
                server.ask_to_stop();
                std::thread::sleep(Duration::from_millis(chance.between(0, STOPPING_MAX)));
                report.stopping += 1;
            }
            server.kill();
            report.kills += 1;
            let summary = sound(&place);
            let began = Instant::now();
            server = start.start();
            took = began.elapsed();
            tell(&format!(
                "round {round} of {}: killed {when}, {} messages so far; {summary}; up again in {} ms",
                plan.rounds,
                traffic.answered(),
                took.as_millis()
            ));
        }
        traffic.await_answers(20);
        traffic.stop_sending();
        server
    });
    let server = judge(&place, &start, server, &people);
    server.stop();
    tell(&format!("stopped as told; {}", sound(&place)));
    report.messages = traffic.answered();
    for person in &people {
        report.connections += person.connections;
        report.repeated += person.repeated;
        report.duplicates += person.duplicates;
        report.receipts += person.receipts;
    }
    assert!(report.repeated > 0, "every kill leaves sends without an answer");
    assert!(report.receipts > 0, "there were receipts to judge");
    report
}

/// Everybody has seen the same, and every cursor is right, before and after one more kill.
pub fn judge(place: &Place, start: &Start<'_>, server: Server, people: &[Person]) -> Server {
    agree(people);
    cursors_are_right(&server, people);
    server.kill();
    sound(place);
    let server = start.start();
    cursors_are_right(&server, people);
    server
}

/// `throng db check` finds nothing to complain of; what it says.
pub fn sound(place: &Place) -> String {
    let Outcome { code, out, err } = place.run(&["db", "check", "--data", "data"]);
    // It tells on standard error how it gets on when it takes long.
    let summary = out.strip_prefix("the database is sound: ").filter(|_| code == 0);
    summary.unwrap_or_else(|| panic!("db check exits {code} and says: {out}{err}")).trim_end().to_owned()
}
