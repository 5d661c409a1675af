//! What a sampler says at its end: mean and greatest of the columns that matter.

use std::fmt;

use super::columns::{Column, Values};

/// The columns that are summed up as levels.
const LEVELS: [Column; 13] = [
    Column::CpuBusy,
    Column::CpuSteal,
    Column::CpuIowait,
    Column::PressureCpu,
    Column::PressureMemory,
    Column::PressureIo,
    Column::ServerCpu,
    Column::ServerResident,
    Column::ServerDescriptors,
    Column::Connections,
    Column::StoreQueue,
    Column::StoreCommitMean,
    Column::Api,
];

/// The columns of which the sum is told.
const COUNTS: [Column; 2] = [Column::ListenOverflows, Column::ListenDrops];

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Level {
    rows: u64,
    sum: f64,
    most: f64,
}

/// What has been so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    rows: u64,
    levels: [Level; LEVELS.len()],
    counts: [Level; COUNTS.len()],
}

impl Summary {
    /// Adds a row. What is missing in it does not count.
    pub fn add(&mut self, row: &Values) {
        self.rows += 1;
        let of_levels = LEVELS.iter().zip(&mut self.levels);
        for (column, level) in of_levels.chain(COUNTS.iter().zip(&mut self.counts)) {
            if let Some(number) = row.number(*column) {
                level.rows += 1;
                level.sum += number;
                level.most = level.most.max(number);
            }
        }
    }

    /// How many rows there were.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows{:>40}{:>16}", self.rows, "mean", "max")?;
        for (column, level) in LEVELS.iter().zip(&self.levels) {
            let name = format!("{} ({})", column.name(), column.unit());
            match level.rows {
                0 => write!(f, "\n  {name:<44}{:>16}", "missing")?,
                rows => write!(f, "\n  {name:<40}{:>14.2}{:>16.2}", level.sum / rows as f64, level.most)?,
            }
        }
        for (column, count) in COUNTS.iter().zip(&self.counts) {
            match count.rows {
                0 => write!(f, "\n  {:<44}{:>16}", column.name(), "missing")?,
                _ => write!(f, "\n  {:<40}{:>14} in all", column.name(), count.sum)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::Value;
    use super::*;

    #[test]
    fn what_is_missing_does_not_count_as_nothing() {
        let mut summary = Summary::default();
        for (busy, overflows) in [(Some(10.0), 2), (None, 3), (Some(40.0), 0)] {
            let mut row = Values::missing();
            row.set(Column::CpuBusy, busy.map(Value::Percent));
            row.set(Column::ListenOverflows, Some(Value::Whole(overflows)));
            summary.add(&row);
        }
        let said = summary.to_string();
        let line = |name: &str| -> Vec<&str> {
            said.lines()
                .find(|line| line.trim().starts_with(name))
                .expect("a line")
                .split_whitespace()
                .collect()
        };
        assert_eq!(line("cpu_busy_pct")[5..], ["25.00", "40.00"]);
        assert_eq!(line("listen_overflows")[1..], ["5", "in", "all"]);
        assert_eq!(line("listen_drops")[1..], ["missing"]);
        assert_eq!(summary.rows(), 3);
    }
}
