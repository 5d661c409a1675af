//! A restart under load (D10): nothing is lost, and everybody comes back in time, spread over the window they were given.

use std::time::Duration;

use torture::restart::{Plan, run};

use crate::chance::Chance;

#[test]
fn d10_restarted_under_load_it_loses_nothing_and_everybody_comes_back_in_time() {
    let plan = Plan {
        clients: 300,
        chat: Duration::from_secs(2),
        pause: Duration::from_millis(500),
        // So that a busy machine does not decide; `cargo xtask torture restart` allows 2 s.
        beyond_window: Duration::from_secs(5),
        settings: vec![
            ("THRONG_DRAIN", "4s".into()),
            ("THRONG_CONNECTIONS_RECONNECT_MIN", "2s".into()),
            ("THRONG_CONNECTIONS_RECONNECT_MAX", "6s".into()),
        ],
    };
    let report = run(&plan, Chance::new(), |line| eprintln!("{line}"));
    eprintln!("{} messages, {} repeated", report.messages, report.repeated);
}
