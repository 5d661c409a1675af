//! The report: one page of what a run and a sampler have written.
//!
//! A function from two files to a page, on the way over checked columns (`grid`), a judgement (`verdict`), charts (`figures`, `chart`,
//! `scale`) and words (`page`). Reads no file and no clock. Every number on the page is one of the files', or a sum of them.

mod chart;
mod data;
mod figures;
mod grid;
mod markup;
mod page;
mod scale;
mod verdict;

#[cfg(test)]
mod tests;

pub use crate::table::TableError;
pub use page::MARK;

use grid::Grid;

/// A file.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Its name, for errors and for the page.
    pub file: &'a str,
    /// All of it.
    pub bytes: &'a [u8],
}

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The page.
    pub html: String,
    /// Its verdict in one sentence.
    pub verdict: String,
}

/// Makes the page of what `throng load` has written, and `throng sample` beside it.
///
/// # Errors
/// When one of them is not what it should be.
pub fn page(run: Input<'_>, sample: Option<Input<'_>>, version: &str) -> Result<Page, TableError> {
    let run = Grid::run(run.file, run.bytes)?;
    let sample = sample.map(|sample| Grid::sample(sample.file, sample.bytes)).transpose()?;
    let verdict = verdict::judge(&run);
    let html = page::html(&run, sample.as_ref(), &verdict, version);
    let said = page::sentence(&run, &verdict);
    let said = if verdict.bottleneck.is_empty() {
        said
    } else {
        format!("the generator was the bottleneck; {said}")
    };
    Ok(Page { html, verdict: said })
}
