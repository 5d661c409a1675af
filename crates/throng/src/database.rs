//! `throng db`: the database looked through or copied, with somebody waiting for it.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use store_sqlite::{BackupError, CheckReport, FINDINGS_MAX, OpenError};

use crate::progress::{Progress, bar, bytes};

/// How often the clock of a check is looked at.
const TICK: Duration = Duration::from_millis(200);

/// Looks through the database of a data folder, or through a backup.
///
/// # Errors
/// When it cannot be looked through at all. Damage is part of the report.
pub fn check(path: &Path) -> Result<CheckReport, OpenError> {
    // SQLite does not say how far it is, so the clock has to do.
    thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            let (began, mut progress) = (Instant::now(), Progress::new());
            while is_done.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let seconds = began.elapsed().as_secs();
                progress.show(format_args!("looking through the database, {seconds} s so far"));
            }
        });
        let report = store_sqlite::check(path);
        drop(done);
        report
    })
}

/// What a check that found nothing says.
pub fn sound(report: &CheckReport) -> String {
    format!(
        "the database is sound: {} conversations, {} entries kept, {} devices, {} client ids, {} users with a phone number\n",
        report.conversations, report.entries, report.devices, report.client_ids, report.users
    )
}

/// What a check that found something says, one thing a line.
pub fn findings(path: &Path, report: &CheckReport) -> Vec<String> {
    let more = if report.findings.len() >= FINDINGS_MAX { ", perhaps more" } else { "" };
    let summary = format!(
        "{}: the database is damaged ({} findings{more}); keep a copy of the folder and restore a backup",
        path.display(),
        report.findings.len()
    );
    let mut lines = report.findings.clone();
    // The same broken page is met by several looks.
    lines.dedup();
    lines.push(summary);
    lines
}

/// Copies the database of a data folder to a new file, and says what was written.
///
/// # Errors
/// When there is no copy.
pub fn backup(data: &Path, file: &Path) -> Result<String, BackupError> {
    let (mut progress, mut written) = (Progress::new(), 0);
    store_sqlite::backup(data, file, &mut |now| {
        written = now.total;
        progress.show(bar(now.copied, now.total));
    })?;
    drop(progress);
    Ok(format!("wrote {}, {}\n", file.display(), bytes(written)))
}
