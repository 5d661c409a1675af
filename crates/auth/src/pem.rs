//! PEM (RFC 7468), as far as keys need it: one block in, one block out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::KeyError;

const PUBLIC: &str = "PUBLIC KEY";
const PRIVATE: &str = "PRIVATE KEY";

/// Whether the bytes are meant as a PEM text, whatever is in it.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    bytes.windows(11).any(|window| window == b"-----BEGIN ")
}

/// Whether the bytes are a PEM text with a private key in PKCS#8.
pub(crate) fn is_private(bytes: &[u8]) -> bool {
    block(bytes).is_some_and(|(label, _)| label == PRIVATE)
}

/// The SubjectPublicKeyInfo in a PEM text.
pub(crate) fn public_key(bytes: &[u8]) -> Result<Vec<u8>, KeyError> {
    match block(bytes).ok_or(KeyError::NotPem)? {
        (PUBLIC, body) => decode(body),
        (label, _) if label.ends_with(PRIVATE) => Err(KeyError::Private),
        (label, _) => Err(KeyError::PemLabel { found: label.chars().take(64).collect() }),
    }
}

/// The PKCS#8 structure in a PEM text.
pub(crate) fn private_key(bytes: &[u8]) -> Result<Vec<u8>, KeyError> {
    match block(bytes).ok_or(KeyError::NotPem)? {
        (PRIVATE, body) => decode(body),
        (label, _) => Err(KeyError::PemLabel { found: label.chars().take(64).collect() }),
    }
}

pub(crate) fn write_public(der: &[u8]) -> String {
    write(PUBLIC, der)
}

pub(crate) fn write_private(der: &[u8]) -> String {
    write(PRIVATE, der)
}

/// Label and body of the only block. Text around it is allowed, a second block is not.
fn block(bytes: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, rest) = rest.split_once("-----END ")?;
    let rest = rest.strip_prefix(label)?.strip_prefix("-----")?;
    (!rest.contains("-----BEGIN ") && !label.contains('\n')).then_some((label, body))
}

fn decode(body: &str) -> Result<Vec<u8>, KeyError> {
    let body: Vec<u8> = body.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(body).map_err(|_| KeyError::NotPem)
}

fn write(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        text.extend(line.iter().map(|&byte| char::from(byte)));
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}
