//! The page: verdict first, then charts, then tables.
//!
//! Owns the order and the words of the page. It stands alone: styles, script and data are in it, and its policy forbids it to fetch anything.

use std::fmt::Write;

use super::chart::Band;
use super::data;
use super::figures::{self, Section};
use super::grid::Grid;
use super::markup::{escaped, grouped};
use super::verdict::{Knee, Step, Verdict};

/// The beginning of every report, by which one is told from other files.
pub const MARK: &str = "<!doctype html><!-- throng report -->";

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Columns of the table of steps: what stands above, and which column of the file it is.
const STEP_COLUMNS: [(&str, &str); 16] = [
    ("target", "target"),
    ("due", "due"),
    ("ok", "ok"),
    ("refused", "refused"),
    ("failed", "failed"),
    ("not sent", "not_sent"),
    ("delivered", "delivered"),
    ("violations", "violations"),
    ("delivery p50 ms", "delivery_p50_ms"),
    ("p95", "delivery_p95_ms"),
    ("p99", "delivery_p99_ms"),
    ("greatest", "delivery_max_ms"),
    ("ack p99 ms", "ack_p99_ms"),
    ("connect p99 ms", "connect_p99_ms"),
    ("late p99 ms", "late_p99_ms"),
    ("generator CPU %", "cpu_pct"),
];

/// The whole page.
pub fn html(run: &Grid<'_>, sample: Option<&Grid<'_>>, verdict: &Verdict, version: &str) -> String {
    let bands = figures::bands(run, verdict);
    let scenario = run.table.fact("scenario").unwrap_or("");
    let mut page = String::from(MARK);
    let _ = write!(
        page,
        "\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Load report: {}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style></head><body>\n",
        escaped(scenario)
    );
    page.push_str(
        "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"7\" \
         height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\"/>\
         <path d=\"M0 0V7\"/></pattern></defs></svg>\n",
    );
    page.push_str(&header(run, scenario));
    page.push_str(&verdict_box(run, sample, verdict));
    page.push_str(&totals(verdict));
    page.push_str("<h2>Load against latency</h2>\n<div class=\"wide\">");
    page.push_str(&figures::load_against_latency(run, verdict).figure(&[]));
    page.push_str("</div>\n<h2>Steps</h2>\n");
    page.push_str(&step_table(run, verdict));
    page.push_str(&by_name(verdict));
    let mut sections = figures::of_run(run, sample);
    sections.extend(sample.map(|sample| figures::of_sample(run, sample)).unwrap_or_default());
    page.push_str(
        "<div id=\"over-time\"><p class=\"soft\">All charts below have the same time axis; the shaded parts are steps being held, hatched where a \
         threshold was broken. Point at a moment, or use the arrow keys in a chart, to read its values everywhere. A gap in a line means that \
         nothing was measured.</p><p id=\"moment\" aria-live=\"polite\"></p>\n",
    );
    for section in &sections {
        page.push_str(&section_html(section, &bands));
    }
    if sample.is_none() {
        page.push_str(
            "<p class=\"soft\">There is no file of a sampler, so nothing is known of the server's machine: <code>throng sample</code> writes one.</p>\n",
        );
    }
    page.push_str("</div>\n");
    page.push_str(&facts(run, sample, version));
    page.push_str(&all_rows(run, sample));
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{SCRIPT}</script>\n</body></html>\n",
        data::json(run, sample)
    );
    page
}

fn header(run: &Grid<'_>, scenario: &str) -> String {
    let server = run.table.fact("server").unwrap_or("an unknown server");
    format!(
        "<header><h1>Load report: {}</h1><p class=\"soft\">{} · begun {} · {} long</p></header>\n",
        escaped(scenario),
        escaped(server),
        utc(run.start_ms()),
        super::scale::time(figures::end(run))
    )
}

/// The verdict in one sentence.
pub fn sentence(run: &Grid<'_>, verdict: &Verdict) -> String {
    let unit = figures::load_unit(run);
    let load = |target: Option<f64>| match target {
        Some(target) => format!("{} {unit}", grouped(&target.to_string())),
        None => "its load".to_owned(),
    };
    match verdict.knee {
        Knee::NoThresholds => "No threshold was set, so there is no verdict and no knee".into(),
        Knee::NoStep => "No step came to its end, so there is no verdict".into(),
        Knee::Below(target) => {
            format!("Thresholds broken from the first step on: the knee lies below {}", load(target))
        }
        Knee::At(step, target) => {
            format!("Knee at {} (step {step}): the last step before thresholds broke", load(target))
        }
        Knee::Above(target) => format!("All thresholds held up to {}: the knee lies above", load(target)),
    }
}

fn verdict_box(run: &Grid<'_>, sample: Option<&Grid<'_>>, verdict: &Verdict) -> String {
    let has_broken = verdict.thresholds.iter().any(|(_, broken)| !broken.is_empty());
    let is_bad = has_broken || verdict.totals.violations > 0.0 || !verdict.bottleneck.is_empty();
    let class = match (is_bad, &verdict.knee) {
        (true, _) => " bad",
        (false, Knee::Above(_)) => " good",
        (false, _) => "",
    };
    let mut items: Vec<(bool, String)> = Vec::new();
    if !verdict.bottleneck.is_empty() {
        let reasons = verdict.bottleneck.join("; ");
        items.push((false, format!("The generator was the bottleneck, so these numbers are its own and not the server's: {reasons}.")));
    }
    for (threshold, broken) in &verdict.thresholds {
        let judged = verdict.steps.iter().filter(|step| step.holds().is_some()).count();
        items.push((broken.is_empty(), threshold_sentence(threshold, broken, judged)));
    }
    items.push(match verdict.totals.violations {
        0.0 => {
            (true, "No message was lost, doubled, changed or out of order, as far as the run went.".into())
        }
        count => (false, format!("{count} violations: messages lost, doubled, changed or out of order.")),
    });
    if verdict.bottleneck.is_empty() {
        items.push((true, "The generator kept up: it was not what was measured.".into()));
    }
    items.push(ending(run, verdict));
    if let Some(sample) = sample {
        items.extend(not_together(run, sample));
    }
    let list: String = items
        .into_iter()
        .map(|(is_good, text)| {
            let (class, sign) = if is_good { ("good", "✓") } else { ("bad", "✗") };
            format!("<li class=\"{class}\"><b>{sign}</b> {}</li>\n", escaped(&text))
        })
        .collect();
    // What was not the server's must not be read as if it were.
    let first = match verdict.bottleneck.is_empty() {
        true => format!("{}.", sentence(run, verdict)),
        false => format!("The generator was the bottleneck. {}.", sentence(run, verdict)),
    };
    format!(
        "<section class=\"verdict{class}\" id=\"verdict\"><p>{}</p><ul>\n{list}</ul></section>\n",
        escaped(&first)
    )
}

fn threshold_sentence(threshold: &str, broken: &[u64], judged: usize) -> String {
    match broken {
        _ if judged == 0 => format!("{threshold}: was not judged, because no step came to its end."),
        [] => format!("{threshold}: held in all {judged} steps."),
        [first, ..] => {
            format!("{threshold}: broken in {} of {judged} steps, first in step {first}.", broken.len())
        }
    }
}

fn ending(run: &Grid<'_>, verdict: &Verdict) -> (bool, String) {
    match verdict.ended.as_deref() {
        Some("finished") => (true, "The run ended by itself.".into()),
        Some("interrupted") => (false, "The run was interrupted before its end.".into()),
        Some("aborted") => (false, "The run was ended early because a threshold was broken.".into()),
        Some(other) => (false, format!("The run ended: {other}.")),
        None => {
            let cut = if run.table.is_cut {
                " Its file ends in the middle of a line, which is left out."
            } else {
                ""
            };
            let end = super::scale::time(figures::end(run));
            let what = "The run did not end by itself: its generator was killed, or is still running.";
            (false, format!("{what} It is shown up to {end}.{cut}"))
        }
    }
}

/// A sampler that ran at another time is of no use.
fn not_together(run: &Grid<'_>, sample: &Grid<'_>) -> Option<(bool, String)> {
    let (start, end) = (run.start_ms(), run.start_ms() + 1_000.0 * figures::end(run));
    let times = sample.column("time_ms");
    let within = times.iter().flatten().filter(|time| (start..=end).contains(*time)).count();
    match (within, times.len()) {
        (0, _) => Some((
            false,
            "The sampler's file is of another time than the run, so its charts are empty.".into(),
        )),
        (within, all) if within < all => Some((
            true,
            format!(
                "{} of the sampler's {all} rows are from before or after the run and not in the charts.",
                all - within
            ),
        )),
        _ => None,
    }
}

fn totals(verdict: &Verdict) -> String {
    let totals = &verdict.totals;
    let cards = [
        ("due", totals.due),
        ("ok", totals.ok),
        ("refused", totals.refused),
        ("failed", totals.failed),
        ("not sent", totals.not_sent),
        ("violations", totals.violations),
    ];
    let card = |(name, number): (&str, f64)| {
        format!("<div><dt>{name}</dt><dd data-value=\"{number}\">{}</dd></div>", grouped(&number.to_string()))
    };
    format!("<dl class=\"totals\" id=\"totals\">{}</dl>\n", cards.map(card).concat())
}

fn step_table(run: &Grid<'_>, verdict: &Verdict) -> String {
    let mut table = String::from(
        "<div class=\"scroll\" tabindex=\"0\"><table id=\"steps\"><thead><tr><th>step</th><th class=\"word\">thresholds</th>",
    );
    for (name, _) in STEP_COLUMNS {
        let _ = write!(table, "<th>{name}</th>");
    }
    table.push_str("</tr></thead><tbody>\n");
    for step in &verdict.steps {
        let _ = write!(table, "<tr><td>{}</td>{}", step.number, judged_cell(step));
        for (_, column) in STEP_COLUMNS {
            let text = match step.row {
                Some(row) => run.text(row, column).to_owned(),
                None if column == "target" => {
                    step.target.map(|target| target.to_string()).unwrap_or_default()
                }
                None => String::new(),
            };
            let shown = if text.is_empty() { "–".to_owned() } else { grouped(&text) };
            let _ = write!(table, "<td data-column=\"{column}\" data-value=\"{text}\">{shown}</td>");
        }
        table.push_str("</tr>\n");
    }
    table.push_str("</tbody></table></div>\n");
    if verdict.steps.iter().any(|step| step.row.is_none()) {
        table.push_str("<p class=\"soft\">A step that did not come to its end has no numbers of its own; its seconds are in the charts and among all rows.</p>\n");
    }
    table
}

fn judged_cell(step: &Step) -> String {
    let (class, words) = match step.holds() {
        Some(true) => (" held", "✓ held"),
        Some(false) => (" broken", "✗ broken"),
        None if step.row.is_none() => ("", "… unfinished"),
        None => ("", "–"),
    };
    format!("<td class=\"word{class}\">{words}</td>")
}

fn by_name(verdict: &Verdict) -> String {
    let totals = &verdict.totals;
    let named = |kind: &'static str, sums: &std::collections::BTreeMap<String, u64>| -> String {
        let row = |(name, count): (&String, &u64)| {
            let share = if totals.due > 0.0 { 100.0 * *count as f64 / totals.due } else { 0.0 };
            format!(
                "<tr><td class=\"word\">{kind}</td><td class=\"word\"><code>{0}</code></td><td data-name=\"{0}\" data-value=\"{count}\">{1}</td><td>{share:.3} %</td></tr>\n",
                escaped(name),
                grouped(&count.to_string())
            )
        };
        sums.iter().map(row).collect()
    };
    let rows = named("refused", &totals.refusals) + &named("failed", &totals.failures);
    if rows.is_empty() {
        return "<h2>Refusals and failures</h2>\n<p>There were none.</p>\n".into();
    }
    format!(
        "<h2>Refusals and failures</h2>\n<p class=\"soft\">A refusal is an answer: the server said no, and why. A failure is no answer, or a wrong one.</p>\n\
         <div class=\"scroll\"><table id=\"names\"><thead><tr><th>outcome</th><th class=\"word\">name</th><th>count</th><th>of what was due</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn section_html(section: &Section, bands: &[Band]) -> String {
    let charts: String = section.charts.iter().map(|chart| chart.figure(bands)).collect();
    let missing = match section.without_values.as_slice() {
        [] => String::new(),
        titles => format!("<p class=\"soft\">Not measured in this run: {}.</p>\n", titles.join(", ")),
    };
    format!("<h2>{}</h2>\n<div class=\"charts\">\n{charts}</div>\n{missing}", section.title)
}

fn facts(run: &Grid<'_>, sample: Option<&Grid<'_>>, version: &str) -> String {
    let mut text = String::from("<h2>Machine, versions and commands</h2>\n");
    let files = [("run", Some(run)), ("sampler", sample)];
    for (what, grid) in files.into_iter().filter_map(|(what, grid)| Some((what, grid?))) {
        let _ = write!(text, "<h3>The {what}: {}</h3>\n<dl class=\"facts\">", escaped(grid.table.file));
        for (key, value) in grid.table.facts.iter().filter(|(key, _)| *key != "command") {
            let _ = write!(text, "<dt>{}</dt><dd>{}</dd>", escaped(key), escaped(value));
        }
        text.push_str("</dl>\n");
        if let Some(command) = grid.table.fact("command") {
            let _ = writeln!(text, "<pre>{}</pre>", escaped(command));
        }
    }
    let _ = writeln!(text, "<p class=\"soft\">This page was made by throng {}.</p>", escaped(version));
    text
}

fn all_rows(run: &Grid<'_>, sample: Option<&Grid<'_>>) -> String {
    let files = [("run", Some(run)), ("sample", sample)];
    let folded: String = files
        .into_iter()
        .filter_map(|(name, grid)| Some((name, grid?)))
        .map(|(name, grid)| {
            format!(
                "<details data-file=\"{name}\"><summary>{}: {} rows</summary><button type=\"button\" class=\"earlier\">earlier</button>\
                 <button type=\"button\" class=\"later\">later</button><span class=\"where\"></span>\
                 <div class=\"scroll\"><table><thead></thead><tbody></tbody></table></div></details>\n",
                escaped(grid.table.file),
                grouped(&grid.table.rows.len().to_string())
            )
        })
        .collect();
    format!("<section id=\"all\"><h2>All rows</h2>\n{folded}</section>\n")
}

/// A moment in UTC (days since 1970 to a date of the Gregorian calendar: years of 365.2425 days that begin in March).
fn utc(ms: f64) -> String {
    let seconds = (ms / 1_000.0).max(0.0) as u64;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since the first of March of the year 0, and the 400 years that repeat.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", of_day / 3_600, of_day / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        // From the tables of RFC 3339 and date(1).
        for (seconds, date) in [
            (0.0, "1970-01-01 00:00 UTC"),
            (951_782_399.0, "2000-02-28 23:59 UTC"),
            (951_782_400.0, "2000-02-29 00:00 UTC"),
            (1_764_527_562.0, "2025-11-30 18:32 UTC"),
            (4_107_542_400.0, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(utc(seconds * 1_000.0), date);
        }
    }
}
