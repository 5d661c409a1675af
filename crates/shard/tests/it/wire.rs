//! The protocol's objects as a person writes them, in both encodings, by libraries that are not the server's.
//!
//! Owns which fields are ids and which are payloads, as `docs/protocol.md` says. Deliberately shares no code with `protocol`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minicbor::data::Type;
use minicbor::{Decoder, Encoder};
use protocol::Encoding;
use serde_json::{Map, Value};

/// Fields that hold a UUID, or a list of them.
const IDS: [&str; 8] = ["conv", "client_id", "session", "user", "from", "by", "users", "members"];

/// One object. What is no UUID where one belongs goes out as it stands, so that mistakes can be written down too.
pub fn encode(encoding: Encoding, object: &Value) -> Vec<u8> {
    match encoding {
        Encoding::Json => object.to_string().into_bytes(),
        Encoding::Cbor => {
            let mut encoder = Encoder::new(Vec::new());
            put(&mut encoder, "", object).expect("a vector takes what is written");
            encoder.into_writer()
        }
    }
}

/// Several objects as one message.
pub fn encode_all(encoding: Encoding, objects: &[Value]) -> Vec<u8> {
    let separator: &[u8] = if encoding == Encoding::Json { b"\n" } else { b"" };
    let encoded: Vec<Vec<u8>> = objects.iter().map(|object| encode(encoding, object)).collect();
    encoded.join(separator)
}

/// All objects of one message from the server.
pub fn decode(encoding: Encoding, message: &[u8]) -> Vec<Value> {
    match encoding {
        Encoding::Json => {
            let text = std::str::from_utf8(message).expect("text frames are UTF-8");
            text.split('\n').map(|line| serde_json::from_str(line).expect(text)).collect()
        }
        Encoding::Cbor => {
            let mut decoder = Decoder::new(message);
            let mut objects = Vec::new();
            while decoder.position() < message.len() {
                objects.push(get(&mut decoder, ""));
            }
            objects
        }
    }
}

fn put(
    encoder: &mut Encoder<Vec<u8>>,
    field: &str,
    value: &Value,
) -> Result<(), minicbor::encode::Error<std::convert::Infallible>> {
    match value {
        Value::Null => _ = encoder.null()?,
        Value::Bool(value) => _ = encoder.bool(*value)?,
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => _ = encoder.u64(number)?,
            (_, Some(number)) => _ = encoder.i64(number)?,
            _ => _ = encoder.f64(number.as_f64().expect("a number"))?,
        },
        Value::String(text) => match bytes_of(field, text) {
            Some(bytes) => _ = encoder.bytes(&bytes)?,
            None => _ = encoder.str(text)?,
        },
        Value::Array(items) => {
            encoder.array(items.len() as u64)?;
            for item in items {
                put(encoder, field, item)?;
            }
        }
        Value::Object(fields) => {
            encoder.map(fields.len() as u64)?;
            for (name, value) in fields {
                encoder.str(name)?;
                put(encoder, name, value)?;
            }
        }
    }
    Ok(())
}

/// The bytes that a text stands for in a field that holds bytes.
fn bytes_of(field: &str, text: &str) -> Option<Vec<u8>> {
    if field == "payload" {
        return STANDARD.decode(text).ok();
    }
    if !IDS.contains(&field) || text.len() != 36 {
        return None;
    }
    let digits = text.replace('-', "");
    (0..16).map(|at| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()).collect()
}

fn get(decoder: &mut Decoder<'_>, field: &str) -> Value {
    match decoder.datatype().expect("well-formed CBOR") {
        Type::Bool => Value::from(decoder.bool().expect("a boolean")),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => Value::from(decoder.u64().expect("an integer")),
        Type::String => {
            assert!(!IDS.contains(&field) && field != "payload", "{field} is text, and ought to be bytes");
            Value::from(decoder.str().expect("a text"))
        }
        Type::Bytes => {
            let bytes = decoder.bytes().expect("bytes");
            Value::from(match field {
                "payload" => STANDARD.encode(bytes),
                field if IDS.contains(&field) => uuid(bytes.try_into().expect("an id has 16 bytes")),
                field => panic!("{field} is bytes, and ought to be something else"),
            })
        }
        Type::Array => {
            let count = decoder.array().expect("an array").expect("lengths are definite");
            (0..count).map(|_| get(decoder, field)).collect()
        }
        Type::Map => {
            let count = decoder.map().expect("a map").expect("lengths are definite");
            let mut fields = Map::new();
            for _ in 0..count {
                let name = decoder.str().expect("a name").to_owned();
                let value = get(decoder, &name);
                assert!(fields.insert(name, value).is_none(), "no name is given twice");
            }
            Value::Object(fields)
        }
        other => panic!("the server sends no {other}"),
    }
}

/// An id as text: 32 digits in groups of 8, 4, 4, 4 and 12 (RFC 9562, section 4).
pub fn uuid(bytes: [u8; 16]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
