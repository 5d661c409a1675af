//! The checkers check: each rule that is broken on purpose is reported within a few seeds, and by the checker it concerns.

use simulator::{Mistake, run};

/// Seeds within which each mistake must be noticed.
const SEEDS_MAX: u64 = 200;

/// The invariants that a mistake may be noticed by.
fn expected(mistake: Mistake) -> &'static [&'static str] {
    match mistake {
        Mistake::None => &[],
        Mistake::AnswersBeforeCommit => &["D1", "D3", "D4", "D7", "D8", "D9", "office", "order"],
        Mistake::DeliveryLost => &["order", "D5", "D11", "rest"],
        Mistake::PushedTwice => &["order"],
        Mistake::PushedOutOfOrder => &["order"],
        Mistake::MarksForgotten => &["D5"],
        Mistake::RemovedStillServed => &["D9", "D1"],
        Mistake::PageWithGap => &["order", "D5"],
        Mistake::PayloadChanged => &["D4"],
        Mistake::ReceiptTooFar => &["D8"],
        Mistake::CursorTooFar => &["D7"],
        Mistake::CursorNotStored => &["D1", "D7", "D8"],
        Mistake::TrimmedTooFar => &["D5", "store"],
        Mistake::NothingPending => &["order", "D5", "D11"],
        Mistake::DuplicateElsewhere => &["D1", "D3"],
        Mistake::NeverUnmarked => &["rest"],
        Mistake::ReuseTaken => &["D1", "D3", "protocol"],
        Mistake::RepeatsTakenAgain => &["D3"],
        Mistake::WindowTailLost => &["D5", "D11", "order", "rest"],
        Mistake::SyncSkipped => &["D1", "D7", "S3"],
        Mistake::SlotReused => &["D9", "order", "protocol", "D5"],
        Mistake::DeliveredBeforeCommit => &["D1", "D4"],
        Mistake::TwoWriters => &["D1", "D3", "D4", "D5", "D7", "D11", "order", "rest", "protocol"],
        Mistake::AnswersAfterFailedSync => &["S1"],
        Mistake::FullDiskAcknowledged => &["D1", "D3", "D7", "D9", "office"],
        Mistake::TornBatchTaken => &["S3", "D1", "D7"],
        Mistake::RecoveredTwice => &["S3", "D1", "D7"],
    }
}

#[test]
fn every_mistake_is_noticed() {
    for mistake in Mistake::ALL {
        let noticed = (1..=SEEDS_MAX).find_map(|seed| Some((seed, run(seed, *mistake, None).violation?)));
        let Some((seed, violation)) = noticed else {
            panic!("{mistake:?} was not noticed in {SEEDS_MAX} seeds")
        };
        println!("{mistake:?}: seed {seed}, {violation}");
        assert!(expected(*mistake).contains(&violation.invariant), "{mistake:?}: seed {seed}, {violation}");
    }
}
