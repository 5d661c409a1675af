//! The page for operators names metrics, options and files; this keeps the names true.

use std::collections::BTreeSet;

use crate::run::Place;
use crate::server::Start;

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md");
    std::fs::read_to_string(page).expect("docs/operating.md")
}

/// What stands between backticks.
fn quoted(page: &str) -> BTreeSet<&str> {
    let lines = page.lines().filter(|line| !line.starts_with("```"));
    lines.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// The blocks of one language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().expect("it is closed")).collect()
}

#[test]
fn its_metrics_are_those_of_the_server() {
    let place = Place::new();
    let server = Start::new(&place).start();
    let page = page();
    let named: Vec<&str> = quoted(&page)
        .into_iter()
        .filter(|name| name.starts_with("throng_") || name.starts_with("process_"))
        .collect();
    assert!(named.len() > 15, "{named:?}");
    let (_, metrics) = server.http("GET", "/metrics", None, "");
    for name in named {
        assert!(metrics.contains(&format!("# TYPE {name} ")), "{name} is no metric");
    }
    server.stop();
}

#[test]
fn its_options_are_those_of_the_configuration() {
    let place = Place::new();
    let shown = place.prints(&["config", "show"]);
    let known: BTreeSet<&str> = shown.lines().filter_map(|line| line.split(" = ").next()).collect();
    let sections: BTreeSet<&str> = known.iter().filter_map(|key| Some(key.split_once('.')?.0)).collect();
    let page = page();
    let mut named = 0;
    for name in quoted(&page) {
        let key = name.split(' ').next().expect("there is always a first part");
        let is_option = key.split_once('.').is_some_and(|(section, rest)| {
            sections.contains(section) && rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        });
        if is_option {
            named += 1;
            assert!(known.contains(key), "`{key}` is no option");
        }
    }
    assert!(named > 5);
    for file in blocks(&page, "toml") {
        place.write("c.toml", file);
        assert_eq!(place.run(&["config", "show", "--config", "c.toml"]).err, "");
    }
}

#[test]
fn its_commands_are_those_of_the_binary() {
    const VERBS: [&str; 7] = ["serve", "token", "keys", "config", "db", "sample", "report"];
    let place = Place::new();
    let page = page();
    let mut seen = 0;
    for line in blocks(&page, "sh").into_iter().flat_map(str::lines) {
        let words: Vec<&str> = line.split(' ').collect();
        // The user and the image have the same name, but no verb behind it.
        let Some(at) = words.windows(2).position(|pair| pair[0] == "throng" && VERBS.contains(&pair[1]))
        else {
            continue;
        };
        let words = &words[at + 1..];
        let verbs = words.iter().take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
        let verbs: Vec<&str> = verbs.copied().collect();
        seen += 1;
        let help = place.prints(&[&verbs[..], &["--help"]].concat());
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "{line}: no {flag}");
        }
    }
    assert!(seen > 8, "{seen}");
}
