//! The page about the route of a message names what happens to one, in this order and nothing else.

use std::fmt::Write;

use simulator::route_of_a_message;

const PAGE: &str = include_str!("../../../../docs/route-of-a-message.md");

/// One stage: where it is, and the names it has in code.
#[derive(Debug, PartialEq, Eq)]
struct Stage {
    place: String,
    names: Vec<String>,
}

/// The names of the form `Type::Variant` in a text, in order.
fn names(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == ':' || c == '_'));
    let named = words.filter(|word| {
        let mut parts = word.split("::");
        let first = parts.next().is_some_and(|part| part.starts_with(char::is_uppercase));
        first && parts.next().is_some_and(|part| !part.is_empty())
    });
    named.map(|word| word.trim_end_matches(':').to_owned()).collect()
}

/// A stage from a line of the trace.
fn traced(line: &str) -> Option<Stage> {
    let (_, what) = line.split_once(' ')?;
    let place = match what.split_whitespace().next()? {
        "client" if what.starts_with("client u0/") => "sender",
        "client" => "receiver",
        "commit" => return None,
        shard if shard.strip_prefix('s').is_some_and(|digit| digit.parse::<u8>().is_ok()) => {
            return Some(Stage { place: format!("shard {}", &shard[1..]), names: names(what) });
        }
        _ => "store",
    };
    Some(Stage { place: place.to_owned(), names: names(what) })
}

/// A stage from a row of the page's table: its number, its place, its names, and what is told of it.
fn told(row: &str) -> Option<Stage> {
    let mut cells = row.strip_prefix("| ")?.split(" | ");
    cells.next()?.parse::<u32>().ok()?;
    Some(Stage { place: cells.next()?.to_owned(), names: names(cells.next()?) })
}

#[test]
fn the_page_is_true() {
    let lines = route_of_a_message().expect("the server is sound");
    let traced: Vec<Stage> = lines.iter().filter_map(|line| traced(line)).collect();
    let told: Vec<Stage> = PAGE.lines().filter_map(told).collect();
    if traced != told {
        let mut rows = String::new();
        for (index, Stage { place, names }) in traced.iter().enumerate() {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            writeln!(rows, "| {} | {place} | {} | |", index + 1, names.join(" · "))
                .expect("a string takes everything");
        }
        panic!("docs/route-of-a-message.md should say:\n{rows}");
    }
}
