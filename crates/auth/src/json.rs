//! One JSON object, read strictly: names at most once, few of them, little nesting, no number out of range.
//!
//! Knows nothing of tokens. `serde_json` parses; this adds what it is lenient about.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Most names in one object.
const NAMES_MAX: usize = 64;
/// Deepest nesting, the object itself included.
const NESTING_MAX: usize = 8;

/// Takes the members of an object one after the other.
pub(crate) trait Members {
    /// Reads the value of `name` from `map`, with [`skip`] when it is of no interest.
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Reads `text`, which must be one object and nothing else, into `members`.
pub(crate) fn read_object<M: Members>(text: &[u8], members: &mut M) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.deserialize_map(ObjectVisitor(members))?;
    reader.end()
}

struct ObjectVisitor<'m, M>(&'m mut M);

impl<'de, M: Members> Visitor<'de> for ObjectVisitor<'_, M> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen: Vec<Cow<'de, str>> = Vec::with_capacity(12);
        while let Some(name) = map.next_key_seed(Name)? {
            // At most 64 short comparisons each: linear enough, and no hash an attacker could aim at.
            if seen.len() == NAMES_MAX || seen.contains(&name) {
                return Err(A::Error::custom("repeated or too many names"));
            }
            self.0.member(&name, &mut map)?;
            seen.push(name);
        }
        Ok(())
    }
}

/// A name, borrowed unless it is written with escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// Reads past a value, which must still be proper JSON and not too deep.
pub(crate) fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value_seed(Skip { nesting: NESTING_MAX - 1 })
}

struct Skip {
    nesting: usize,
}

impl Skip {
    fn deeper<E: Error>(&self) -> Result<usize, E> {
        self.nesting.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))
    }
}

impl<'de> DeserializeSeed<'de> for Skip {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        // Not `deserialize_ignored_any`: that one looks at neither strings nor numbers.
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Skip {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let nesting = self.deeper()?;
        while list.next_element_seed(Skip { nesting })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let nesting = self.deeper()?;
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Skip { nesting })?;
        }
        Ok(())
    }
}

/// Reads a string value and gives it to `take`, without a copy unless it is written with escapes.
pub(crate) fn text<'de, A: MapAccess<'de>, T>(
    map: &mut A,
    take: impl FnOnce(&str) -> Option<T>,
) -> Result<T, A::Error> {
    map.next_value_seed(Text(take))
}

struct Text<F>(F);

impl<'de, T, F: FnOnce(&str) -> Option<T>> DeserializeSeed<'de> for Text<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<T, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an acceptable string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).ok_or_else(|| E::custom("not an acceptable string"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Members for Nothing {
        fn member<'de, A: MapAccess<'de>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
            skip(map)
        }
    }

    #[test]
    fn only_one_plain_object_is_read() {
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let many = |names: usize| {
            let members: Vec<String> = (0..names).map(|n| format!("\"n{n}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        for (text, taken) in [
            ("{}".to_owned(), true),
            (r#"{"a":1,"b":[true,null,"x",-1,1.5,{"c":{}}]}"#.to_owned(), true),
            (deep(7), true),
            (deep(8), false),
            (many(64), true),
            (many(65), false),
            (r#"{"a":1,"a":1}"#.to_owned(), false),
            (r#"{"a":1,"\u0061":2}"#.to_owned(), false),
            (r#"{"a":1e400}"#.to_owned(), false),
            (r#"{"a":{"b":[1e400]}}"#.to_owned(), false),
            (r#"{"a":"\ud800"}"#.to_owned(), false),
            (r#"{"a":01}"#.to_owned(), false),
            (r#"{"a":NaN}"#.to_owned(), false),
            (r#"{"a":1,}"#.to_owned(), false),
            (r#"{"a":1} x"#.to_owned(), false),
            (r#"{"a":1}{}"#.to_owned(), false),
            (r#"[]"#.to_owned(), false),
            (r#""a""#.to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(read_object(text.as_bytes(), &mut Nothing).is_ok(), taken, "{text}");
        }
        assert!(read_object(b"{\"a\":\"\xff\"}", &mut Nothing).is_err(), "not UTF-8");
    }
}
