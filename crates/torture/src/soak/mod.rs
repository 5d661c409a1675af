//! A soak: a crowd chats for long through a bad network, with a few kills and restarts, while the server is watched.
//!
//! Owns the course of it. What is measured and what may not grow is in `samples`.

mod samples;

use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::kill::{judge, sound};
use crate::proxy::{Nature, Proxy};
use crate::run::Place;
use crate::server::{Server, Start};
use crate::traffic::{Traffic, agree, chat, crowd};
use samples::{Samples, growth};

/// Senders, and as many receivers.
const SIZE: u64 = 50;
/// Each sender pauses for so long after each message.
const PAUSE: Duration = Duration::from_millis(200);
/// Payloads of 3 to so many words, about 1 KiB on average: far more than what the server has to remember of a message that all have.
const WORDS_MAX: u64 = 250;
/// Longest and shortest time between two samples.
const SAMPLE_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// At least so many samples are taken.
const SAMPLES_MIN: u32 = 48;
/// Samples at the end that are told once more: five minutes of them.
const LAST: usize = 30;
/// From the last message until everything has arrived, through a network as bad as before.
const END_MAX: Duration = Duration::from_secs(300);
/// From then until the server has tidied up.
const TIDY_MAX: Duration = Duration::from_secs(60);

/// What happened.
pub struct Report {
    /// Messages that were answered.
    pub messages: u64,
    /// Kills.
    pub kills: u32,
    /// Restarts as told.
    pub restarts: u32,
    /// Connections that came about.
    pub connections: u64,
    /// What befell them, for people to read.
    pub network: String,
}

/// Soaks a server for so long and checks everything; panics with what is wrong.
pub fn run(time: Duration, seed: u64, mut tell: impl FnMut(&str)) -> Report {
    let mut chance = Chance::from_seed(seed);
    let place = Place::new();
    // A small cache is full early, so that what grows later is something else.
    let start = Start::new(&place).generous().with("THRONG_STORE_CACHE_BYTES", 4 * 1024 * 1024);
    let server = start.start();
    let people = crowd(&server, SIZE);
    let devices = people.len() as u64;
    let nature = Nature { piece_max: 1_000, troubled: 5, ..Nature::bad() };
    let proxy = Proxy::start(server.address, nature, seed);
    let traffic = Traffic::new(proxy.address).pausing(PAUSE).with_words(WORDS_MAX).lasting(time + END_MAX);
    let mut report = Report { messages: 0, kills: 0, restarts: 0, connections: 0, network: String::new() };
    let mut samples = Samples::new(&place);
    let (people, server) = chat(&traffic, people, || {
        let mut server = server;
        let mut disturbances = moments(time, &mut chance).into_iter().peekable();
        let every = (time / SAMPLES_MIN).clamp(SAMPLE_EVERY.0, SAMPLE_EVERY.1);
        let began = Instant::now();
        while began.elapsed() < time {
            traffic.wait(every);
            if disturbances.next_if(|at| *at <= began.elapsed()).is_some() {
                server = disturb(server, &start, &mut report, &mut tell);
                samples.lives += 1;
            }
            tell(&samples.take(&server, traffic.answered()));
        }
        traffic.stop_sending();
        server
    });
    report.messages = traffic.answered();
    report.connections = people.iter().map(|person| person.connections).sum();
    report.network = proxy.describe();
    drop(proxy);
    agree(&people);
    await_tidy(&place, &mut tell);
    judge(&place, &start, server, &people).stop();
    tell(&sound(&place));
    tell("the last minutes:");
    samples.last(LAST).for_each(|line| tell(&line));
    let undisturbed = samples.from(time / 2);
    let lines = growth(undisturbed, devices);
    lines.iter().for_each(|line| tell(&line.text));
    let grown: Vec<&str> = lines.iter().filter(|line| !line.holds).map(|line| line.text.as_str()).collect();
    assert!(grown.is_empty(), "{}", grown.join("; "));
    report
}

/// When the server is killed or restarted: one moment in ten minutes, two at least, all in the first half.
fn moments(time: Duration, chance: &mut Chance) -> Vec<Duration> {
    let count = (time.as_secs() / 600).max(2);
    let share = time.mul_f64(0.4) / count as u32;
    let moment = |n: u64| time / 20 + share * n as u32 + share.mul_f64(chance.between(0, 999) as f64 / 1e3);
    (0..count).map(moment).collect()
}

/// One kill, one restart, and so on.
fn disturb(
    mut server: Server,
    start: &Start<'_>,
    report: &mut Report,
    tell: &mut impl FnMut(&str),
) -> Server {
    let how = if report.kills <= report.restarts {
        report.kills += 1;
        server.kill();
        "killed"
    } else {
        report.restarts += 1;
        server.ask_to_stop();
        let (status, _) = server.wait(Duration::from_secs(35));
        assert!(status.success(), "{status}");
        "stopped as told"
    };
    tell(&format!("{how}; {}", sound(start.place)));
    start.start()
}

/// Everything was acknowledged by everybody, so no entry has to be kept. The server tidies up when it is quiet.
fn await_tidy(place: &Place, tell: &mut impl FnMut(&str)) {
    let end = Instant::now() + TIDY_MAX;
    loop {
        let said = sound(place);
        if said.contains(" 0 entries kept") {
            return tell(&format!("all have everything: {said}"));
        }
        assert!(Instant::now() < end, "all have everything, and after {TIDY_MAX:?} there is still {said}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_lie_in_the_first_half() {
        for seed in 0..100 {
            for minutes in [1, 5, 60] {
                let time = Duration::from_secs(60 * minutes);
                let moments = moments(time, &mut Chance::from_seed(seed));
                assert_eq!(moments.len() as u64, (minutes / 10).max(2));
                assert!(moments.is_sorted() && moments.iter().all(|at| *at < time.mul_f64(0.46)));
            }
        }
    }
}
