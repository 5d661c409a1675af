//! The files' own numbers in the page, digit by digit as they stand there: what the charts are read from, and what a program may read.

use super::grid::Grid;
use super::markup::json_string;

/// A JSON object of both files.
pub fn json(run: &Grid<'_>, sample: Option<&Grid<'_>>) -> String {
    let sample = sample.map_or("null".to_owned(), file);
    format!("{{\"start_ms\":{},\n\"run\":{},\n\"sample\":{sample}}}", run.start_ms(), file(run))
}

fn file(grid: &Grid<'_>) -> String {
    let table = &grid.table;
    let facts: Vec<String> = table
        .facts
        .iter()
        .map(|(key, value)| format!("[{},{}]", json_string(key), json_string(value)))
        .collect();
    let columns: Vec<String> = table.columns.iter().map(|name| json_string(name)).collect();
    let rows: Vec<String> = table.rows.iter().map(|row| row_json(grid, &row.cells)).collect();
    format!(
        "{{\"file\":{},\"facts\":[{}],\"ended\":{},\"is_cut\":{},\"columns\":[{}],\"rows\":[\n{}\n]}}",
        json_string(table.file),
        facts.join(","),
        table.ended.map_or("null".to_owned(), json_string),
        table.is_cut,
        columns.join(","),
        rows.join(",\n")
    )
}

fn row_json(grid: &Grid<'_>, cells: &[&str]) -> String {
    let cell = |(at, text): (usize, &&str)| match (grid.is_numeric(at), text.is_empty()) {
        (_, true) => "null".to_owned(),
        // It was checked to be a number of JSON.
        (true, false) => (*text).to_owned(),
        (false, false) => json_string(text),
    };
    let cells: Vec<String> = cells.iter().enumerate().map(cell).collect();
    format!("[{}]", cells.join(","))
}
