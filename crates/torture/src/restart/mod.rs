//! A rolling restart: thousands of clients chat in pairs while their server is told to stop and is started again.
//!
//! Owns the course of it and what must hold of the return. What each client does and has seen is in `returning`.

mod returning;

use std::time::Duration;

use load::{Fleet, FleetOptions};
use protocol::Encoding;

use crate::chance::Chance;
use crate::kill::sound;
use crate::run::Place;
use crate::server::{Server, Start, token};
pub use returning::Return;
use returning::Returning;

/// No second of the window may bring more than so many times its even share.
const SHARES_MAX: f64 = 3.0;
/// Longest wait for everybody to be in at first.
const COMING_MAX: Duration = Duration::from_secs(120);
/// Longest wait for everybody to be back, and for everything to have arrived.
const RETURN_MAX: Duration = Duration::from_secs(120);
/// How often the course of things is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How it is done.
pub struct Plan {
    /// Clients, two for each conversation.
    pub clients: usize,
    /// The chat before the restart, and after everybody is back.
    pub chat: Duration,
    /// Each sender pauses for so long after each message.
    pub pause: Duration,
    /// What a client may need beyond its window: to connect, and to be let in.
    pub beyond_window: Duration,
    /// More settings of the server.
    pub settings: Vec<(&'static str, String)>,
}

/// What happened.
pub struct Report {
    /// From the signal to the end of the process.
    pub stopped: Duration,
    /// From its start until it was ready.
    pub started: Duration,
    /// Messages that were answered.
    pub messages: u64,
    /// Sends that were repeated after the return.
    pub repeated: u64,
    /// How everybody came back; times are since the signal.
    pub returns: Vec<Return>,
}

/// Restarts a server under its clients and checks everything; panics with what is wrong.
pub fn run(plan: &Plan, chance: Chance, mut tell: impl FnMut(&str)) -> Report {
    let place = Place::new();
    let mut start = Start::new(&place).generous();
    start.settings.extend(plan.settings.iter().cloned());
    let server = start.start();
    let user = |client: usize| format!("client {client}");
    let pairs = plan.clients / 2;
    let conversations =
        (0..pairs).map(|pair| server.direct(&token(&user(2 * pair), 1), &user(2 * pair + 1))).collect();
    let tokens = (0..2 * pairs).map(|client| token(&user(client), 1)).collect();
    let options = FleetOptions { encoding: Encoding::Cbor, ..FleetOptions::new(server.address) };
    let mut fleet = Fleet::with_tokens(options, tokens).expect("a reactor");
    let mut clients = Returning::new(conversations, plan.pause, chance);
    let all = 2 * pairs;
    let come = fleet.run(&mut clients, COMING_MAX, |fleet, _| fleet.open() == all).expect("it turns");
    assert!(come, "{} of {all} came in: {:?}", fleet.open(), fleet.failure());
    tell(&format!("{all} clients are in; {pairs} of them send every {} ms", plan.pause.as_millis()));

    let for_a_while = fleet.elapsed() + plan.chat;
    turn(&mut fleet, &mut clients, plan.chat * 2, |fleet, _| fleet.elapsed() >= for_a_while);
    assert_eq!(fleet.open(), all, "nobody leaves unasked: {:?}", fleet.failure());
    tell(&format!("{} messages answered; the server is told to stop", clients.answered()));
    let signal = fleet.elapsed();
    let (server, stopped, started) = std::thread::scope(|scope| {
        let restarted = scope.spawn(|| restart(server, &start));
        turn(&mut fleet, &mut clients, RETURN_MAX, |_, _| restarted.is_finished());
        restarted.join().expect("it starts again")
    });
    tell(&format!("stopped in {} ms, up again in {} ms", stopped.as_millis(), started.as_millis()));
    let back = turn(&mut fleet, &mut clients, RETURN_MAX, |fleet, _| fleet.open() == all);
    assert!(back, "{} of {all} came back: {}", fleet.open(), clients.describe());
    let for_a_while = fleet.elapsed() + plan.chat;
    turn(&mut fleet, &mut clients, plan.chat * 2, |fleet, _| fleet.elapsed() >= for_a_while);
    clients.stop();
    let whole = turn(&mut fleet, &mut clients, RETURN_MAX, |_, clients| clients.is_whole());
    assert!(whole, "not everything arrived: {}", clients.describe());
    assert_eq!(fleet.open(), all, "nobody leaves again: {}", clients.describe());
    drop(fleet);
    server.stop();
    tell(&sound(&place));

    let (messages, repeated) = (clients.answered(), clients.repeated);
    let mut returns = clients.returns;
    for one in &mut returns {
        one.lost -= signal.min(one.lost);
        one.back -= signal.min(one.back);
    }
    assert_eq!(returns.len(), all, "everybody was sent away once");
    judge(&returns, plan.beyond_window, &mut tell);
    Report { stopped, started, messages, repeated, returns }
}

/// Lets the fleet turn and the senders write until something holds.
fn turn(
    fleet: &mut Fleet,
    clients: &mut Returning,
    at_most: Duration,
    mut until: impl FnMut(&Fleet, &Returning) -> bool,
) -> bool {
    let end = fleet.elapsed() + at_most;
    while fleet.elapsed() < end {
        if until(fleet, clients) {
            return true;
        }
        fleet.run(clients, LOOK_EVERY, |_, _| false).expect("it turns");
        fleet.prompt(|context| clients.write(context));
        assert_eq!(clients.violations.first(), None);
    }
    false
}

/// As a supervisor does it. Says how long it took to stop, and to start.
fn restart(mut server: Server, start: &Start<'_>) -> (Server, Duration, Duration) {
    server.ask_to_stop();
    let (status, stopped) = server.wait(Duration::from_secs(35));
    assert!(status.success(), "{status}");
    let began = std::time::Instant::now();
    (start.start(), stopped, began.elapsed())
}

/// Nobody waited longer than its window and a moment, and they came back spread over it.
fn judge(returns: &[Return], beyond_window: Duration, tell: &mut impl FnMut(&str)) {
    let histogram = Histogram::new(returns);
    histogram.lines().iter().for_each(|line| tell(line));
    for one in returns {
        let waited = one.back - one.lost;
        assert!(
            waited <= one.window.1 + beyond_window,
            "a client was sent away at {:?} with a window of {:?} and was back after {waited:?}, having failed {} times",
            one.lost,
            one.window,
            one.failures
        );
    }
    let (second, most) = histogram.most();
    assert!(
        most as f64 <= SHARES_MAX * histogram.even,
        "second {second} brings {most}, the even share is {:.0}",
        histogram.even
    );
}

/// How many came back in each second from the beginning of the first window to the end of the last.
struct Histogram {
    from: Duration,
    seconds: Vec<usize>,
    even: f64,
}

impl Histogram {
    fn new(returns: &[Return]) -> Histogram {
        let from = returns.iter().map(|one| one.lost + one.window.0).min().expect("somebody came back");
        let to = returns.iter().map(|one| one.lost + one.window.1).max().expect("somebody came back");
        let mut seconds = Vec::new();
        for one in returns {
            let second = one.back.saturating_sub(from).as_secs() as usize;
            seconds.resize(seconds.len().max(second + 1), 0);
            seconds[second] += 1;
        }
        let width = (to - from).as_secs_f64().max(1.0);
        Histogram { from, seconds, even: returns.len() as f64 / width }
    }

    fn most(&self) -> (usize, usize) {
        self.seconds.iter().copied().enumerate().max_by_key(|(_, count)| *count).expect("it is not empty")
    }

    fn lines(&self) -> Vec<String> {
        let line = |(second, count): (usize, &usize)| {
            let at = self.from.as_secs_f64() + second as f64;
            let bar = "#".repeat((*count as f64 / self.even * 20.0) as usize);
            format!("{at:5.1} s after the signal {count:5} {bar}")
        };
        self.seconds.iter().enumerate().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_secs(2);

    fn returned(lost: u64, window: (u64, u64), back: u64) -> Return {
        let seconds = Duration::from_secs;
        Return {
            lost: seconds(lost),
            window: (seconds(window.0), seconds(window.1)),
            back: seconds(back),
            failures: 0,
        }
    }

    #[test]
    fn an_even_return_holds() {
        let returns: Vec<Return> = (0..100).map(|n| returned(0, (5, 15), 5 + n % 10)).collect();
        judge(&returns, MOMENT, &mut |_| {});
        let histogram = Histogram::new(&returns);
        assert_eq!((histogram.even, histogram.seconds), (10.0, vec![10; 10]));
    }

    #[test]
    #[should_panic(expected = "brings 31, the even share is 10")]
    fn a_herd_is_seen() {
        let herd = (0..31).map(|_| returned(0, (5, 15), 9));
        let others = (0..69).map(|n| returned(0, (5, 15), 5 + n % 3));
        judge(&herd.chain(others).collect::<Vec<_>>(), MOMENT, &mut |_| {});
    }

    #[test]
    #[should_panic(expected = "was back after 18s")]
    fn a_long_wait_is_seen() {
        judge(&[returned(0, (5, 15), 18)], MOMENT, &mut |_| {});
    }
}
