//! Rust source without what is not code: comments and texts blanked, tests taken out, paths read.
//!
//! Owns just enough of the language to tell a mention in code from one in a sentence. Knows no rule.

/// The source with every comment, text and character literal replaced by spaces; line breaks stay where they are.
pub fn without_texts(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => block_comment_end(&chars, at),
            '"' => text_end(&chars, at),
            '\'' => character_end(&chars, at).unwrap_or(at),
            'r' | 'b' | 'c' if !follows_word(&chars, at) => prefixed_text_end(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn follows_word(chars: &[char], at: usize) -> bool {
    at > 0 && is_word(chars[at - 1])
}

fn line_end(chars: &[char], at: usize) -> usize {
    (at..chars.len()).find(|i| chars[*i] == '\n').unwrap_or(chars.len())
}

/// Block comments nest.
fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn text_end(chars: &[char], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `None` for a lifetime, which is code.
fn character_end(chars: &[char], quote: usize) -> Option<usize> {
    match (chars.get(quote + 1)?, chars.get(quote + 2)?) {
        ('\\', _) => (quote + 3..chars.len()).find(|i| chars[*i] == '\'').map(|i| i + 1),
        (_, '\'') => Some(quote + 3),
        _ => None,
    }
}

/// `r"…"`, `r#"…"#`, `b"…"`, `br"…"`, `b'…'`, `c"…"` and the like.
fn prefixed_text_end(chars: &[char], start: usize) -> Option<usize> {
    let mut at = start;
    while matches!(chars.get(at), Some('r' | 'b' | 'c')) && at - start < 2 {
        at += 1;
    }
    let raw = chars[start..at].contains(&'r');
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    match chars.get(at + hashes) {
        Some('"') if raw => {
            let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let body = at + hashes + 1;
            let found = chars[body..].windows(close.len()).position(|window| window == close);
            Some(found.map_or(chars.len(), |offset| body + offset + close.len()))
        }
        Some('"') if hashes == 0 => Some(text_end(chars, at)),
        Some('\'') if hashes == 0 && !raw => character_end(chars, at),
        _ => None,
    }
}

/// A file's code without its tests.
pub struct Code {
    /// Comments, texts and test items blanked; line breaks kept.
    pub text: String,
    /// Modules that are declared here for tests only and live in files of their own.
    pub test_modules: Vec<String>,
}

/// Takes the texts out of a source, and everything under `#[cfg(test)]` or behind a feature: the server is built without features, they are
/// for tests of several crates together.
pub fn without_tests(source: &str) -> Code {
    let stripped = without_texts(source);
    let mut chars: Vec<char> = stripped.chars().collect();
    let mut test_modules = Vec::new();
    if compact(&stripped).starts_with("#![cfg(test)]") {
        return Code { text: String::new(), test_modules };
    }
    let mut at = 0;
    while at < chars.len() {
        let Some(attribute_end) = test_attribute_end(&chars, at) else {
            at += 1;
            continue;
        };
        let end = item_end(&chars, attribute_end);
        let item: String = chars[attribute_end..end].iter().collect();
        test_modules.extend(declared_module(&item));
        for c in &mut chars[at..end] {
            if *c != '\n' {
                *c = ' ';
            }
        }
        at = end;
    }
    Code { text: chars.into_iter().collect(), test_modules }
}

fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The end of `#[cfg(test)]`, `#[cfg(all(test, …))]` or `#[cfg(feature = …)]` that starts here.
fn test_attribute_end(chars: &[char], at: usize) -> Option<usize> {
    if chars[at] != '#' || chars.get(at + 1) != Some(&'[') {
        return None;
    }
    let end = matching_end(chars, at + 1, '[', ']');
    let attribute: String = chars[at..end].iter().collect();
    let attribute = compact(&attribute);
    let beginnings = ["#[cfg(test)]", "#[cfg(all(test,", "#[cfg(feature="];
    beginnings.iter().any(|beginning| attribute.starts_with(beginning)).then_some(end)
}

fn matching_end(chars: &[char], open: usize, left: char, right: char) -> usize {
    let mut depth = 0;
    for (offset, c) in chars[open..].iter().enumerate() {
        if *c == left {
            depth += 1;
        } else if *c == right {
            depth -= 1;
            if depth == 0 {
                return open + offset + 1;
            }
        }
    }
    chars.len()
}

/// Where the item after an attribute ends: its block, or its semicolon.
fn item_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    for at in start..chars.len() {
        match chars[at] {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => {
                let end = matching_end(chars, at, '{', '}');
                // `use a::{b};` and `const X: T = T { … };` go on to their semicolon.
                return match chars[end..].iter().position(|c| !c.is_whitespace()) {
                    Some(offset) if chars[end + offset] == ';' => end + offset + 1,
                    _ => end,
                };
            }
            ';' | ',' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    chars.len()
}

/// `mod name;`
fn declared_module(item: &str) -> Option<String> {
    let words: Vec<&str> = item.trim().strip_suffix(';')?.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "mod")?;
    words.get(at + 1).map(|name| (*name).to_owned())
}

/// A path as the code mentions it, `use` trees opened: `use std::{fs, time::Instant}` mentions two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Its parts; a single name is a path of one part.
    pub parts: Vec<String>,
    /// The line, from 1.
    pub line: usize,
}

#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    PathSeparator,
    Other(char),
}

/// Every path in a code that [`without_texts`] or [`without_tests`] has prepared.
pub fn mentions(code: &str) -> Vec<Mention> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at = match &tokens[at].0 {
            Token::Word(word) if word == "use" => use_tree(&tokens, at + 1, &[], &mut found),
            Token::Word(_) => path(&tokens, at, &mut found),
            _ => at + 1,
        };
    }
    found
}

fn tokens(code: &str) -> Vec<(Token, usize)> {
    let mut out = Vec::new();
    let mut line = 1;
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\n' {
            line += 1;
        } else if is_word(c) {
            let mut word = String::from(c);
            while let Some(next) = chars.next_if(|next| is_word(*next)) {
                word.push(next);
            }
            out.push((Token::Word(word), line));
        } else if c == ':' && chars.next_if_eq(&':').is_some() {
            out.push((Token::PathSeparator, line));
        } else if !c.is_whitespace() {
            out.push((Token::Other(c), line));
        }
    }
    out
}

fn path(tokens: &[(Token, usize)], start: usize, found: &mut Vec<Mention>) -> usize {
    let mut parts = Vec::new();
    let mut at = start;
    while let Some((Token::Word(word), _)) = tokens.get(at) {
        parts.push(word.clone());
        at += 1;
        let more = matches!(tokens.get(at), Some((Token::PathSeparator, _)))
            && matches!(tokens.get(at + 1), Some((Token::Word(_), _)));
        if !more {
            break;
        }
        at += 1;
    }
    found.push(Mention { parts, line: tokens[start].1 });
    at
}

/// One branch of a `use` after `prefix`; returns where it stopped: at `,`, `}` or `;`.
fn use_tree(tokens: &[(Token, usize)], start: usize, prefix: &[String], found: &mut Vec<Mention>) -> usize {
    let mut parts = prefix.to_vec();
    let mut at = start;
    while let Some((token, line)) = tokens.get(at) {
        match token {
            Token::Word(word) if word == "as" => at += 1,
            Token::Word(word) => parts.push(word.clone()),
            Token::Other('{') => {
                at += 1;
                while !matches!(tokens.get(at), None | Some((Token::Other('}' | ';'), _))) {
                    at = use_tree(tokens, at, &parts, found);
                    if matches!(tokens.get(at), Some((Token::Other(','), _))) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            Token::Other(',' | '}' | ';') => {
                if parts.len() > prefix.len() {
                    found.push(Mention { parts, line: *line });
                }
                return at;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(code: &str) -> Vec<String> {
        mentions(&without_tests(code).text).into_iter().map(|mention| mention.parts.join("::")).collect()
    }

    #[test]
    fn comments_and_texts_are_no_code() {
        let source = r##"
// one
/* two /* nested */ two */
let a = "three \" three";
let b = r#"four " four"#;
let c = b"five"; let d = 'x'; let e = '\''; let f = b'"';
let g: &'static str = h;
"##;
        let code = without_texts(source);
        for absent in ["one", "two", "nested", "three", "four", "five", "x"] {
            assert!(!code.contains(absent), "{absent} in {code}");
        }
        for present in ["let a", "let b", "let f", "&'static str = h;"] {
            assert!(code.contains(present), "{present} in {code}");
        }
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn tests_are_taken_out_and_the_rest_stays() {
        let code = without_tests(
            "fn a() {}\n#[cfg(test)]\n#[allow(unused)]\nmod tests { fn b() { if x { } } }\n\
             #[cfg(test)]\nuse c::{d};\nfn e() {}\n#[cfg(test)]\nmod script;\n#[cfg(not(test))]\nfn f() {}\n",
        );
        assert_eq!(code.test_modules, ["script"]);
        for absent in ["tests", "fn b", "use c", "script"] {
            assert!(!code.text.contains(absent), "{absent} in {}", code.text);
        }
        for present in ["fn a", "fn e", "fn f"] {
            assert!(code.text.contains(present), "{present} in {}", code.text);
        }
    }

    #[test]
    fn use_trees_are_opened() {
        assert_eq!(
            words("use std::{fs, time::{Duration, Instant as Clock}, io::{self, Read}};\nuse model::Seq;\n"),
            [
                "std::fs",
                "std::time::Duration",
                "std::time::Instant",
                "std::io::self",
                "std::io::Read",
                "model::Seq"
            ]
        );
    }

    #[test]
    fn paths_outside_of_use_are_read() {
        assert_eq!(
            words("fn f(x: std::net::IpAddr) { std :: thread::spawn(g::<u8>); }"),
            ["fn", "f", "x", "std::net::IpAddr", "std::thread::spawn", "g", "u8"]
        );
    }
}
