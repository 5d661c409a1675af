//! Text that goes into a page: nothing in it is taken for markup.

use std::fmt::Write;

/// Text between tags, or in an attribute between double quotes.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// A string of JSON that may stand in a script element: neither its end nor a comment can begin in it (HTML, "Restrictions for contents of
/// script elements").
pub fn json_string(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 2);
    safe.push('"');
    for c in text.chars() {
        match c {
            '"' => safe.push_str("\\\""),
            '\\' => safe.push_str("\\\\"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                write!(safe, "\\u{:04x}", c as u32).expect("a string takes everything");
            }
            c => safe.push(c),
        }
    }
    safe.push('"');
    safe
}

/// A number as it stands in a file, its digits grouped by narrow blanks.
pub fn grouped(number: &str) -> String {
    let (sign, unsigned) = if let Some(rest) = number.strip_prefix('-') { ("-", rest) } else { ("", number) };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut text = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        // Four digits are read at a glance.
        if at > 0 && (whole.len() - at).is_multiple_of(3) && whole.len() > 4 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_what_it_stands_in() {
        assert_eq!(escaped("<a href=\"x\">'&</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&lt;/a&gt;");
        let text = "</script><!-- \"\\\u{2028}\n";
        let safe = json_string(text);
        assert!(!safe.contains(['<', '>', '&', '\n', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).expect("JSON"), text);
    }

    #[test]
    fn digits_are_grouped_and_none_is_changed() {
        for (number, shown) in [
            ("0", "0"),
            ("1234", "1234"),
            ("12345", "12\u{202f}345"),
            ("1234567.125", "1\u{202f}234\u{202f}567.125"),
            ("-123456", "-123\u{202f}456"),
        ] {
            assert_eq!(grouped(number), shown);
        }
    }
}
