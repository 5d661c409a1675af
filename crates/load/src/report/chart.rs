//! One chart as SVG: axes, bands of steps, limits, lines.
//!
//! Owns how a chart looks and where its points lie. What it shows it is given. The scale is written into attributes, so that the
//! page's script can find a moment and a test can find the values of the points.

use std::fmt::Write;

use super::markup::escaped;
use super::scale::{Axis, Measure, Point, thinned, time_ticks};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 450.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 208.0;
/// A band narrower than this has no room for its name.
const NAMED_BAND_WIDTH_MIN: f64 = 30.0;

/// What lies on the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Across {
    /// Seconds since the start, up to the end.
    Time(f64),
    /// What steps ask for.
    Load(&'static str),
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Which file its points are from: `run`, `steps` or `sample`.
    pub source: &'static str,
    /// Which column.
    pub column: &'static str,
    /// What stands beside it.
    pub label: &'static str,
    /// Its points.
    pub points: Vec<Point>,
}

/// A value that should not be exceeded.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The value.
    pub value: f64,
    /// What it is.
    pub label: String,
}

/// A step on the time axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// From when to when it was held.
    pub held: (f64, f64),
    /// Its short name.
    pub name: String,
    /// What it is, in words.
    pub title: String,
    /// Whether its thresholds held; none when that is not known.
    pub holds: Option<bool>,
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its name in the page.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What to look for.
    pub caption: String,
    /// What is measured.
    pub measure: Measure,
    /// The horizontal axis.
    pub across: Across,
    /// The lines; at most four can be told apart.
    pub lines: Vec<Line>,
    /// Limits.
    pub limits: Vec<Limit>,
    /// The place of the knee on an axis of load.
    pub knee: Option<f64>,
}

impl Chart {
    /// Whether any line has a value.
    pub fn is_empty(&self) -> bool {
        !self.lines.iter().flat_map(|line| &line.points).any(|(_, value)| value.is_some())
    }

    /// The figure, with its legend.
    pub fn figure(&self, bands: &[Band]) -> String {
        let values: Vec<f64> =
            self.lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1).collect();
        let limits = self.limits.iter().map(|limit| limit.value);
        let most = values.iter().copied().fold(0.0, f64::max);
        // A limit far above everything would press the lines flat.
        let limits: Vec<f64> = limits.filter(|limit| *limit <= 4.0 * most).collect();
        let up = Axis::covering(&[&values[..], &limits[..]].concat(), self.measure);
        let (end, ticks) = self.across_ticks();
        let mut svg = String::new();
        self.open(&mut svg, &up, end);
        if matches!(self.across, Across::Time(_)) {
            draw_bands(&mut svg, bands, end);
        }
        draw_grid(&mut svg, &up, end, &ticks);
        for limit in &self.limits {
            draw_limit(&mut svg, &up, limit, limits.contains(&limit.value));
        }
        if let Some(knee) = self.knee {
            draw_knee(&mut svg, knee / end);
        }
        for (at, line) in self.lines.iter().enumerate() {
            draw_line(&mut svg, line, at, &up, end, matches!(self.across, Across::Load(_)));
        }
        let _ = write!(
            svg,
            r#"<line class="cross" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{BOTTOM}" visibility="hidden"/></svg>"#
        );
        format!(
            "<figure id=\"{}\"><figcaption><h3>{}</h3><p>{}</p></figcaption>{svg}{}</figure>\n",
            self.id,
            escaped(self.title),
            escaped(&self.caption),
            self.legend()
        )
    }

    fn open(&self, svg: &mut String, up: &Axis, end: f64) {
        let (kind, name) = match self.across {
            Across::Time(_) => ("time", "minutes and seconds since the start"),
            Across::Load(what) => ("load", what),
        };
        let _ = write!(
            svg,
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}" tabindex="0" data-across="{kind}" data-end="{end}" data-low="{}" data-high="{}" data-log="{}" data-left="{LEFT}" data-right="{RIGHT}" data-top="{TOP}" data-bottom="{BOTTOM}"><text class="unit" x="0" y="10">{}</text><text class="unit" x="{RIGHT}" y="{}" text-anchor="end">{}</text>"#,
            escaped(self.title),
            up.low,
            up.high,
            up.is_log,
            escaped(&up.unit),
            HEIGHT - 4.0,
            escaped(name),
        );
    }

    fn across_ticks(&self) -> (f64, Vec<(f64, String)>) {
        match self.across {
            Across::Time(end) => (end, time_ticks(end)),
            Across::Load(what) => {
                let most = self.lines.iter().flat_map(|line| &line.points).map(|point| point.0);
                let axis = Axis::covering(&most.collect::<Vec<f64>>(), Measure::Count(what));
                let factor =
                    axis.unit.split(' ').next().filter(|word| ["thousand", "million"].contains(word));
                let sign = factor.map_or("", |factor| if factor == "million" { " M" } else { " k" });
                let ticks = axis.ticks.into_iter();
                let named = |text: String| if text == "0" { text } else { text + sign };
                (axis.high, ticks.map(|(at, text)| (at, named(text))).collect())
            }
        }
    }

    fn legend(&self) -> String {
        let mut list = String::from("<ul class=\"legend\">");
        for (at, line) in self.lines.iter().enumerate() {
            let _ = write!(
                list,
                r#"<li><svg viewBox="0 0 26 8" aria-hidden="true"><path class="l{at}" d="M1 4H25"/></svg>{} <output data-source="{}" data-column="{}"></output></li>"#,
                escaped(line.label),
                line.source,
                line.column
            );
        }
        list + "</ul>"
    }
}

fn across(share: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * share.clamp(0.0, 1.0)
}

fn upward(share: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * share
}

fn draw_bands(svg: &mut String, bands: &[Band], end: f64) {
    for band in bands {
        let (left, right) = (across(band.held.0 / end), across(band.held.1 / end));
        let class = match band.holds {
            Some(true) => "band held",
            Some(false) => "band broken",
            None => "band",
        };
        let (width, height) = (right - left, BOTTOM - TOP);
        let _ = write!(
            svg,
            r#"<rect class="{class}" x="{left:.1}" y="{TOP}" width="{width:.1}" height="{height}"><title>{}</title></rect>"#,
            escaped(&band.title)
        );
        if width >= NAMED_BAND_WIDTH_MIN {
            let (middle, y) = ((left + right) / 2.0, TOP - 5.0);
            let _ = write!(
                svg,
                r#"<text class="name" x="{middle:.1}" y="{y}" text-anchor="middle">{}</text>"#,
                escaped(&band.name)
            );
        }
    }
}

fn draw_grid(svg: &mut String, up: &Axis, end: f64, ticks: &[(f64, String)]) {
    for (value, text) in &up.ticks {
        let y = upward(up.share(*value));
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1}" y2="{y:.1}"/><text x="{}" y="{:.1}" text-anchor="end">{text}</text>"#,
            LEFT - 5.0,
            y + 3.5
        );
    }
    for (value, text) in ticks {
        let x = across(value / end);
        let anchor = if x > RIGHT - 12.0 { "end" } else { "middle" };
        let _ = write!(
            svg,
            r#"<line class="tick" x1="{x:.1}" x2="{x:.1}" y1="{BOTTOM}" y2="{}"/><text x="{x:.1}" y="{}" text-anchor="{anchor}">{text}</text>"#,
            BOTTOM + 4.0,
            BOTTOM + 17.0
        );
    }
}

/// One that lies above the chart is told at its upper edge.
fn draw_limit(svg: &mut String, up: &Axis, limit: &Limit, is_within: bool) {
    let label = escaped(&limit.label);
    if is_within {
        let y = upward(up.share(limit.value));
        let _ = write!(
            svg,
            r#"<line class="limit" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1}" y2="{y:.1}"/><text class="limit" x="{}" y="{:.1}">{label}</text>"#,
            LEFT + 4.0,
            y - 3.0
        );
    } else {
        let _ = write!(
            svg,
            r#"<text class="limit" x="{}" y="{}">↑ {label}, above this chart</text>"#,
            LEFT + 4.0,
            TOP + 10.0
        );
    }
}

fn draw_knee(svg: &mut String, share: f64) {
    let x = across(share);
    let (anchor, beside) = if share > 0.7 { ("end", -4.0) } else { ("start", 4.0) };
    let _ = write!(
        svg,
        r#"<line class="knee" x1="{x:.1}" x2="{x:.1}" y1="{TOP}" y2="{BOTTOM}"/><text class="name" x="{:.1}" y="{}" text-anchor="{anchor}">knee</text>"#,
        x + beside,
        BOTTOM - 6.0
    );
}

fn draw_line(svg: &mut String, line: &Line, at: usize, up: &Axis, end: f64, has_marks: bool) {
    let points = thinned(&line.points);
    let mut path = String::new();
    let (mut is_down, mut marks) = (false, String::new());
    for (at_point, (place, value)) in points.iter().enumerate() {
        let Some(value) = value else {
            is_down = false;
            continue;
        };
        let (x, y) = (across(place / end), upward(up.share(*value)));
        let _ = write!(path, "{}{x:.1} {y:.1}", if is_down { 'L' } else { 'M' });
        // A point with gaps on both sides is a dot.
        let is_alone = !is_down && points.get(at_point + 1).is_none_or(|(_, next)| next.is_none());
        if is_alone {
            path.push_str("h0");
        }
        is_down = true;
        if has_marks {
            marks.push_str(&mark(at, x, y));
        }
    }
    let _ = write!(
        svg,
        r#"<path class="l{at}" data-source="{}" data-column="{}" d="{path}"/>{marks}"#,
        line.source, line.column
    );
}

/// A shape for each line, so that colour is not all that tells them apart.
fn mark(at: usize, x: f64, y: f64) -> String {
    match at {
        0 => format!(r#"<circle class="m{at}" cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#),
        1 => format!(r#"<rect class="m{at}" x="{:.1}" y="{:.1}" width="7" height="7"/>"#, x - 3.5, y - 3.5),
        _ => format!(
            r#"<path class="m{at}" d="M{x:.1} {:.1}L{:.1} {:.1}H{:.1}Z"/>"#,
            y - 4.5,
            x + 4.2,
            y + 3.2,
            x - 4.2
        ),
    }
}
