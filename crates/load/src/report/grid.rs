//! The two files as the report needs them: known columns, checked cell by cell, on one time axis.
//!
//! Owns which columns there must be and what may stand in them. Decides nothing about what the numbers mean.

use crate::sample::Column;
use crate::table::{Row, Table, TableError};

/// Columns of a run with numbers.
pub const RUN_NUMBERS: [&str; 29] = [
    "time_ms",
    "elapsed_s",
    "step",
    "target",
    "connections",
    "connecting",
    "due",
    "ok",
    "refused",
    "failed",
    "not_sent",
    "delivered",
    "violations",
    "bytes_in",
    "bytes_out",
    "delivery_p50_ms",
    "delivery_p95_ms",
    "delivery_p99_ms",
    "delivery_max_ms",
    "ack_p50_ms",
    "ack_p95_ms",
    "ack_p99_ms",
    "ack_max_ms",
    "connect_p50_ms",
    "connect_p95_ms",
    "connect_p99_ms",
    "connect_max_ms",
    "late_p99_ms",
    "cpu_pct",
];
/// Columns of a run with words.
const RUN_WORDS: [&str; 5] = ["kind", "phase", "refusals", "failures", "thresholds"];
/// Columns of a run that no row leaves empty.
const RUN_NEVER_EMPTY: [&str; 3] = ["time_ms", "elapsed_s", "step"];

/// A file whose cells are what they should be.
#[derive(Debug)]
pub struct Grid<'a> {
    /// As it was read.
    pub table: Table<'a>,
    /// The numbers of each column in each row; no row where words stand.
    numbers: Vec<Vec<Option<f64>>>,
}

impl<'a> Grid<'a> {
    /// Reads what `throng load` has written.
    ///
    /// # Errors
    /// When it is something else.
    pub fn run(file: &'a str, bytes: &'a [u8]) -> Result<Grid<'a>, TableError> {
        let table = Table::parse(file, bytes)?;
        if table.column("kind").is_err() && table.column(Column::CpuBusy.name()).is_ok() {
            let what =
                "is what `throng sample` has written; the file of `throng load` comes first, this one second";
            return Err(whole_file(file, what));
        }
        let grid = Grid::checked(table, &RUN_NUMBERS, &RUN_WORDS, &RUN_NEVER_EMPTY)?;
        let thresholds = grid.thresholds().len();
        let [kind, phase, refusals, failures, judged] = RUN_WORDS.map(|name| grid.at(name));
        for row in &grid.table.rows {
            let wrong = |column, what: &str| grid.table.wrong(row, column, what.to_owned());
            if !["second", "step"].contains(&row.cells[kind]) {
                return Err(wrong(kind, "must be `second` or `step`"));
            }
            if !["ramp", "hold", "drain"].contains(&row.cells[phase]) {
                return Err(wrong(phase, "must be `ramp`, `hold` or `drain`"));
            }
            for column in [refusals, failures] {
                counts(row.cells[column])
                    .ok_or_else(|| wrong(column, "must be `name=count` joined by `;`"))?;
            }
            let found = judgements(row.cells[judged])
                .ok_or_else(|| wrong(judged, "must be `held` or `broken`, joined by `;`"))?;
            if row.cells[kind] == "step" && found.len() != thresholds {
                let what = format!("judges {} thresholds, and the head names {thresholds}", found.len());
                return Err(wrong(judged, &what));
            }
        }
        if grid.rows_of("second").next().is_none() {
            return Err(whole_file(file, "has no row of a second: the run ended before its first one"));
        }
        Ok(grid)
    }

    /// Reads what `throng sample` has written.
    ///
    /// # Errors
    /// When it is something else.
    pub fn sample(file: &'a str, bytes: &'a [u8]) -> Result<Grid<'a>, TableError> {
        let table = Table::parse(file, bytes)?;
        if table.column(Column::CpuBusy.name()).is_err() && table.column("kind").is_ok() {
            let what =
                "is what `throng load` has written; it comes first, and the file of `throng sample` second";
            return Err(whole_file(file, what));
        }
        let is_word = |column: &Column| matches!(column, Column::BusiestThread | Column::ApiStatus);
        let (words, numbers): (Vec<Column>, Vec<Column>) =
            Column::ALL.iter().partition(|column| is_word(column));
        let names = |columns: Vec<Column>| columns.into_iter().map(Column::name).collect::<Vec<&str>>();
        Grid::checked(table, &names(numbers), &names(words), &[Column::Time.name()])
    }

    fn checked(
        table: Table<'a>,
        numbers: &[&str],
        words: &[&str],
        never_empty: &[&str],
    ) -> Result<Grid<'a>, TableError> {
        for name in numbers.iter().chain(words) {
            table.column(name)?;
        }
        let read = |(at, name): (usize, &&str)| -> Result<Vec<Option<f64>>, TableError> {
            if !numbers.contains(name) {
                return Ok(Vec::new());
            }
            let cell = |row: &Row<'_>| match table.number(row, at)? {
                None if never_empty.contains(name) => Err(table.wrong(row, at, "must not be empty".into())),
                number => Ok(number),
            };
            table.rows.iter().map(cell).collect()
        };
        let numbers = table.columns.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Grid { table, numbers })
    }

    /// The place of a column that is known to be there.
    fn at(&self, name: &str) -> usize {
        self.table.column(name).expect("it was checked when the file was read")
    }

    /// Whether a column has numbers.
    pub fn is_numeric(&self, column: usize) -> bool {
        self.numbers[column].len() == self.table.rows.len()
    }

    /// The number in a row.
    pub fn number(&self, row: usize, name: &str) -> Option<f64> {
        self.numbers[self.at(name)].get(row).copied().flatten()
    }

    /// What stands in a row.
    pub fn text(&self, row: usize, name: &str) -> &'a str {
        self.table.rows[row].cells[self.at(name)]
    }

    /// A whole column.
    pub fn column(&self, name: &str) -> &[Option<f64>] {
        &self.numbers[self.at(name)]
    }

    /// The numbers of the rows of one kind.
    pub fn rows_of(&self, kind: &'static str) -> impl Iterator<Item = usize> + '_ {
        let at = self.at("kind");
        (0..self.table.rows.len()).filter(move |row| self.table.rows[*row].cells[at] == kind)
    }

    /// The thresholds in the order in which steps judge them.
    pub fn thresholds(&self) -> Vec<&'a str> {
        let values = self.table.facts.iter().filter(|(key, _)| *key == "threshold").map(|(_, value)| *value);
        values.filter(|value| *value != "none").collect()
    }

    /// When the run began, in milliseconds since 1970: the zero of the time axis.
    pub fn start_ms(&self) -> f64 {
        let first = self.rows_of("second").next().expect("a run has a row");
        let number = |name| self.number(first, name).expect("it is never empty");
        number("time_ms") - 1_000.0 * number("elapsed_s")
    }
}

fn whole_file(file: &str, what: &str) -> TableError {
    TableError { file: file.to_owned(), line: None, column: None, what: what.to_owned() }
}

/// `name=count` joined by `;`.
pub fn counts(cell: &str) -> Option<Vec<(&str, u64)>> {
    let parts = cell.split(';').filter(|_| !cell.is_empty());
    parts
        .map(|part| {
            let (name, count) = part.split_once('=')?;
            (!name.is_empty()).then_some((name, count.parse().ok()?))
        })
        .collect()
}

/// Whether each threshold held.
pub fn judgements(cell: &str) -> Option<Vec<bool>> {
    let parts = cell.split(';').filter(|_| !cell.is_empty());
    parts
        .map(|part| match part {
            "held" => Some(true),
            "broken" => Some(false),
            _ => None,
        })
        .collect()
}
