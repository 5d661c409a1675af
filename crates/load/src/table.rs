//! The files of rows that a run and a sampler leave: `# key: value` lines, a line of column names, rows, and how it ended.
//!
//! Owns the shape of such a file and the errors that name file, line and column. Deliberately knows no column and what it
//! means; whoever reads one asks by name.

use std::error::Error;
use std::fmt;

/// A file as it was read. What stands in it is borrowed from its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table<'a> {
    /// The file's name, for whoever is told about it.
    pub file: &'a str,
    /// The `# key: value` lines in their order, but how it ended.
    pub facts: Vec<(&'a str, &'a str)>,
    /// The names of the columns in their order.
    pub columns: Vec<&'a str>,
    /// The rows in their order.
    pub rows: Vec<Row<'a>>,
    /// The value of the line `# ended: …`; none when the writer did not come to write it.
    pub ended: Option<&'a str>,
    /// Whether an unfinished line at the end was left out.
    pub is_cut: bool,
}

/// One row, with as many cells as there are columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its line in the file, from 1.
    pub line: usize,
    /// What stands between the commas.
    pub cells: Vec<&'a str>,
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError {
    /// The file.
    pub file: String,
    /// The line, from 1; none when it is about the whole file.
    pub line: Option<usize>,
    /// The column, by name.
    pub column: Option<String>,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column `{column}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl Error for TableError {}

impl<'a> Table<'a> {
    /// Reads a file. A last line without its end is left out: its writer was killed.
    ///
    /// # Errors
    /// When it has not the shape described above.
    pub fn parse(file: &'a str, bytes: &'a [u8]) -> Result<Table<'a>, TableError> {
        let wrong = |line: Option<usize>, what: String| TableError {
            file: file.to_owned(),
            line,
            column: None,
            what,
        };
        if bytes.is_empty() {
            return Err(wrong(None, "the file is empty".into()));
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            wrong(Some(line), "is not text in UTF-8".into())
        })?;
        let is_cut = whole < bytes.len();
        let mut table =
            Table { file, facts: Vec::new(), columns: Vec::new(), rows: Vec::new(), ended: None, is_cut };
        for (number, line) in (1..).zip(text.lines()) {
            if table.ended.is_some() {
                return Err(wrong(Some(number), "the file goes on after the line `# ended: …`".into()));
            }
            table.take(number, line).map_err(|what| wrong(Some(number), what))?;
        }
        if table.columns.is_empty() {
            return Err(wrong(None, "has no line of column names".into()));
        }
        Ok(table)
    }

    fn take(&mut self, number: usize, line: &'a str) -> Result<(), String> {
        if let Some(fact) = line.strip_prefix('#') {
            let (key, value) =
                fact.split_once(':').ok_or("a line that begins with # must be `# key: value`")?;
            match key.trim() {
                "ended" => self.ended = Some(value.trim()),
                key => self.facts.push((key, value.trim())),
            }
        } else if self.columns.is_empty() {
            self.columns = line.split(',').collect();
            if let Some(name) = repeated(&self.columns) {
                return Err(format!("the column `{name}` is there twice"));
            }
        } else {
            let cells: Vec<&str> = line.split(',').collect();
            if cells.len() != self.columns.len() {
                return Err(format!(
                    "has {} cells, and there are {} columns",
                    cells.len(),
                    self.columns.len()
                ));
            }
            self.rows.push(Row { line: number, cells });
        }
        Ok(())
    }

    /// The value of the first line `# key: value` with this key.
    pub fn fact(&self, key: &str) -> Option<&'a str> {
        self.facts.iter().find(|(found, _)| *found == key).map(|(_, value)| *value)
    }

    /// The place of a column in every row.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn column(&self, name: &str) -> Result<usize, TableError> {
        self.columns.iter().position(|column| *column == name).ok_or_else(|| TableError {
            file: self.file.to_owned(),
            line: None,
            column: Some(name.to_owned()),
            what: "is missing".into(),
        })
    }

    /// The number in a cell; none when the cell is empty.
    ///
    /// # Errors
    /// When something else stands there.
    pub fn number(&self, row: &Row<'_>, column: usize) -> Result<Option<f64>, TableError> {
        match row.cells[column] {
            "" => Ok(None),
            cell if is_number(cell) => Ok(cell.parse().ok()),
            cell => Err(self.wrong(row, column, format!("`{cell}` is no number"))),
        }
    }

    /// An error about one cell.
    pub fn wrong(&self, row: &Row<'_>, column: usize, what: String) -> TableError {
        TableError {
            file: self.file.to_owned(),
            line: Some(row.line),
            column: Some(self.columns[column].to_owned()),
            what,
        }
    }
}

fn repeated<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| *name)
}

/// Digits with an optional sign in front and an optional fraction: what is a number here is one in JSON, too.
fn is_number(cell: &str) -> bool {
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = cell.strip_prefix('-').unwrap_or(cell);
    let (whole, fraction) =
        unsigned.split_once('.').map_or((unsigned, None), |(whole, rest)| (whole, Some(rest)));
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    all_digits(whole) && !leading_zero && fraction.is_none_or(all_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "# throng: 0.1.0\n# command: throng load chat --rate 1:2\na,b,c\n1,,x\n-2.50,0,\n# ended: finished\n";

    #[test]
    fn a_finished_file_is_read() {
        let table = Table::parse("run.csv", GOOD.as_bytes()).expect("good");
        assert_eq!(table.facts, [("throng", "0.1.0"), ("command", "throng load chat --rate 1:2")]);
        assert_eq!((table.ended, table.is_cut), (Some("finished"), false));
        let (a, b) = (table.column("a").unwrap(), table.column("b").unwrap());
        let numbers: Vec<_> = table
            .rows
            .iter()
            .map(|row| (table.number(row, a).unwrap(), table.number(row, b).unwrap()))
            .collect();
        assert_eq!(numbers, [(Some(1.0), None), (Some(-2.5), Some(0.0))]);
        assert_eq!(table.rows[1].line, 5);
    }

    #[test]
    fn however_it_is_cut_what_is_whole_is_read_or_the_error_says_why() {
        for length in 1..GOOD.len() {
            let bytes = &GOOD.as_bytes()[..length];
            match Table::parse("run.csv", bytes) {
                Ok(table) => {
                    assert_eq!(table.ended, None);
                    assert_eq!(table.is_cut, !bytes.ends_with(b"\n"), "{length}");
                    let whole = GOOD[..length].matches('\n').count();
                    assert_eq!(table.rows.len(), whole.saturating_sub(3), "{length}");
                }
                Err(error) => assert_eq!(error.to_string(), "run.csv: has no line of column names"),
            }
        }
        // In the middle of a letter of two bytes.
        let table = Table::parse("x", b"a\n1\n\xc3").expect("the rest is whole");
        assert_eq!((table.rows.len(), table.is_cut), (1, true));
    }

    #[test]
    fn errors_name_file_line_and_column() {
        for (text, said) in [
            (&b""[..], "f: the file is empty"),
            (b"# a: b\n", "f: has no line of column names"),
            (b"# a\nb\n", "f, line 1: a line that begins with # must be `# key: value`"),
            (b"a,b,a\n", "f, line 1: the column `a` is there twice"),
            (b"a,b\n1,2\n1\n", "f, line 3: has 1 cells, and there are 2 columns"),
            (b"a\n\xff\n", "f, line 2: is not text in UTF-8"),
            (b"a\n# ended: finished\n1\n", "f, line 3: the file goes on after the line `# ended: …`"),
        ] {
            assert_eq!(Table::parse("f", text).expect_err("wrong").to_string(), said);
        }
        let table = Table::parse("f", b"a,b\n1,x\n").expect("the shape is good");
        assert_eq!(table.column("c").expect_err("none").to_string(), "f, column `c`: is missing");
        let said = table.number(&table.rows[0], 1).expect_err("no number").to_string();
        assert_eq!(said, "f, line 2, column `b`: `x` is no number");
    }

    #[test]
    fn numbers_are_those_of_json() {
        for good in ["0", "10", "-1", "0.000", "12.345", "1764527562123"] {
            assert!(is_number(good), "{good}");
        }
        for bad in ["", "-", ".5", "5.", "+1", "1e3", "NaN", "inf", "0x1", "1 000", "01", "1.2.3", "１"] {
            assert!(!is_number(bad), "{bad}");
        }
    }
}
