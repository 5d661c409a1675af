//! What a sampler warns of while it runs: a machine that has no room left, and connections that the kernel drops. Once an episode.

use std::time::Duration;

use super::columns::{Column, Values};

/// Busy and stolen time above which a machine has no room for a surge.
pub const BUSY_PERCENT_MAX: f64 = 70.0;
/// For how long it must be above in every row; a short surge is what room is for.
pub const SUSTAINED: Duration = Duration::from_secs(10);

/// The episodes that are going on.
#[derive(Debug, Default)]
pub struct Alarms {
    busy_since: Option<Duration>,
    is_busy_told: bool,
    is_overflowing: bool,
}

impl Alarms {
    /// Looks at a row whose interval goes from `began` to `ended`, both since the start, and says what has to be said.
    pub fn look(&mut self, row: &Values, began: Duration, ended: Duration) -> Vec<String> {
        let mut said = Vec::new();
        let used = row.number(Column::CpuBusy).zip(row.number(Column::CpuSteal));
        match used.map(|(busy, steal)| busy + steal).filter(|percent| *percent > BUSY_PERCENT_MAX) {
            None => (self.busy_since, self.is_busy_told) = (None, false),
            Some(percent) => {
                let lasts = ended - *self.busy_since.get_or_insert(began);
                if lasts >= SUSTAINED && !self.is_busy_told {
                    self.is_busy_told = true;
                    said.push(format!(
                        "the machine has been busy for {} s (busy and steal above {BUSY_PERCENT_MAX} % in every row, now {percent:.0} %)",
                        lasts.as_secs()
                    ));
                }
            }
        }
        let overflows = row.number(Column::ListenOverflows).filter(|overflows| *overflows > 0.0);
        if let Some(overflows) = overflows
            && !self.is_overflowing
        {
            said.push(format!(
                "the kernel dropped {overflows} connections because an accept queue was full; raise net.core.somaxconn, \
                 or the server does not keep up with accepting"
            ));
        }
        self.is_overflowing = overflows.is_some();
        said
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::Value;
    use super::*;

    /// Rows of two seconds: busy, steal, overflows; and how much was said after each.
    fn said(rows: &[(Option<f64>, f64, u64)]) -> Vec<usize> {
        let mut alarms = Alarms::default();
        let look = |(at, (busy, steal, overflows)): (usize, &(Option<f64>, f64, u64))| {
            let mut row = Values::missing();
            row.set(Column::CpuBusy, busy.map(Value::Percent));
            row.set(Column::CpuSteal, Some(Value::Percent(*steal)));
            row.set(Column::ListenOverflows, Some(Value::Whole(*overflows)));
            let second = |at: usize| Duration::from_secs(2 * at as u64);
            alarms.look(&row, second(at), second(at + 1)).len()
        };
        rows.iter().enumerate().map(look).collect()
    }

    #[test]
    fn a_machine_that_is_busy_for_ten_seconds_is_told_once_until_it_rests() {
        let (busy, idle) = ((Some(60.0), 11.0, 0), (Some(70.0), 0.0, 0));
        assert_eq!(said(&[busy; 4]), [0, 0, 0, 0]);
        assert_eq!(said(&[busy; 8]), [0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(
            said(&[busy, busy, busy, busy, idle, busy, busy, busy, busy, busy]),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        );
        let mut twice = vec![busy; 6];
        twice.push(idle);
        twice.extend([busy; 6]);
        assert_eq!(said(&twice).iter().sum::<usize>(), 2);
        // What is not known is not sustained.
        assert_eq!(said(&[busy, busy, busy, busy, (None, 99.0, 0), busy]), [0; 6]);
    }

    #[test]
    fn dropped_connections_are_told_at_once_and_once_an_episode() {
        let row = |overflows| (Some(1.0), 0.0, overflows);
        assert_eq!(said(&[row(0), row(3), row(9), row(0), row(1)]), [0, 1, 0, 0, 1]);
    }
}
