//! The metrics page, read by a parser made from the description of the format (version 0.0.4).

use std::collections::{BTreeMap, BTreeSet};

use crate::client::Client;
use crate::server::{Options, Server, token};

/// One family as the page shows it.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    /// Name and labels as written, and the value.
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.as_bytes()[0].is_ascii_digit()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
}

/// Takes a page apart and panics on whatever the format does not allow.
fn parse(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut current = String::new();
    assert!(page.ends_with('\n'), "the last line ends too");
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect(line);
            assert!(is_name(name) && !help.is_empty(), "{line}");
            assert!(helped.insert(name.to_owned()), "one HELP for each name: {line}");
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect(line);
            assert_eq!(name, current, "TYPE follows HELP");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let before =
                families.insert(name.to_owned(), Family { kind: kind.to_owned(), samples: Vec::new() });
            assert!(before.is_none(), "one TYPE for each name: {line}");
        } else {
            let (name, labels, value) = sample(line);
            let family = families.get_mut(&current).expect("samples come after their TYPE");
            let suffix =
                name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{line} belongs to {current}"));
            let allowed: &[&str] =
                if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(allowed.contains(&suffix), "{line}");
            assert!(family.samples.iter().all(|(n, l, _)| (n, l) != (&name, &labels)), "once: {line}");
            family.samples.push((name, labels, value));
        }
    }
    for (name, family) in &families {
        assert!(!family.samples.is_empty(), "{name} has samples");
    }
    families
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (name, rest) = line.split_at(line.find(['{', ' ']).expect(line));
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    let mut rest = rest;
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            rest = rest.strip_prefix(',').unwrap_or(rest);
            let (label, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            rest = after;
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect(line);
    (name.to_owned(), labels, value.parse().expect(line))
}

/// The text up to the quote that ends it, and what follows.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().expect("something is escaped").1 {
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                c => panic!("{c:?} is not escaped"),
            },
            c => value.push(c),
        }
    }
    panic!("the value does not end: {text}");
}

fn read(client: &mut Client) -> BTreeMap<String, Family> {
    let answer = client.ask("GET", "/metrics", None, None);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    parse(&answer.body)
}

/// The sum over all labels.
fn total(families: &BTreeMap<String, Family>, name: &str) -> f64 {
    families[name].samples.iter().map(|(_, _, value)| value).sum()
}

fn label_values(family: &Family, label: &str) -> Vec<String> {
    family.samples.iter().map(|(_, labels, _)| labels[label].clone()).collect()
}

#[test]
fn the_page_shows_every_shard_the_store_the_fabric_and_the_process() {
    let server = Server::with(Options { shards: Some(3), ..Options::default() });
    let mut client = server.client();
    let families = read(&mut client);
    for metric in shard::Metric::ALL {
        let family = &families[metric.name()];
        assert_eq!(family.kind, metric.kind());
        assert_eq!(label_values(family, "shard"), ["0", "1", "2"], "{}", metric.name());
    }
    assert_eq!(label_values(&families["throng_fabric_blocks_sent_total"], "port"), ["0", "1", "2", "store"]);
    let build = &families["throng_build_info"].samples[0];
    assert_eq!((build.1["version"].as_str(), build.2), ("1.2.3 \"test\"", 1.0));
    let resident = total(&families, "process_resident_memory_bytes");
    assert!((1e6..1e11).contains(&resident), "{resident}");
    let started = total(&families, "process_start_time_seconds");
    let age = crate::server::now().0 as f64 / 1e3 - started;
    assert!((0.0..300.0).contains(&age), "{age}");
}

#[test]
fn what_happens_is_counted() {
    let server = Server::start();
    let mut client = server.client();
    let before = read(&mut client);
    let body = r#"{"kind":"group","members":[]}"#;
    assert_eq!(client.ask("POST", "/v1/conversations", Some(&token("alice")), Some(body)).status, 201);
    assert_eq!(client.ask("GET", "/nowhere", None, None).status, 404);
    let after = read(&mut client);
    let more = |name: &str| total(&after, name) - total(&before, name);
    assert!(more("throng_store_requests_total") >= 1.0);
    assert!(more("throng_store_batches_total") >= 1.0);
    assert!(more("throng_fabric_items_sent_total") >= 2.0, "the question and the answer");
    assert!(more("throng_shard_turns_total") >= 1.0);
    // The creation, the missing page and the first page of metrics; the second is counted after it was made.
    assert_eq!(more("throng_http_requests_total"), 3.0);
    assert_eq!(total(&after, "throng_http_connections"), 1.0, "this one");
    assert_eq!(total(&after, "throng_store_read_only"), 0.0);
}

#[test]
fn histograms_are_cumulative() {
    let server = Server::start();
    let mut client = server.client();
    let body = r#"{"kind":"group","members":[]}"#;
    for _ in 0..20 {
        assert_eq!(client.ask("POST", "/v1/conversations", Some(&token("alice")), Some(body)).status, 201);
    }
    let families = read(&mut client);
    for name in ["throng_store_commit_seconds", "throng_store_batch_requests"] {
        let family = &families[name];
        assert_eq!(family.kind, "histogram");
        let of = |suffix: &str| -> Vec<_> {
            family.samples.iter().filter(|(sample, ..)| *sample == format!("{name}{suffix}")).collect()
        };
        let (buckets, sum, count) = (of("_bucket"), of("_sum")[0].2, of("_count")[0].2);
        let bounds: Vec<f64> = buckets
            .iter()
            .map(|(_, labels, _)| labels["le"].replace("+Inf", "inf").parse().expect("a bound"))
            .collect();
        assert!(bounds.is_sorted_by(|a, b| a < b) && bounds.last() == Some(&f64::INFINITY), "{bounds:?}");
        assert!(buckets.is_sorted_by_key(|(_, _, below)| *below), "{buckets:?}");
        assert_eq!(buckets.last().expect("a bucket").2, count);
        assert_eq!(count, total(&families, "throng_store_batches_total"), "{name}");
        assert!(sum > 0.0 && count > 0.0);
    }
    let requests = &families["throng_store_batch_requests"];
    let sum = requests.samples.iter().find(|(name, ..)| name.ends_with("_sum")).expect("a sum").2;
    assert_eq!(sum, total(&families, "throng_store_requests_total"));
}
