//! The examples of the RFCs. Their claims are not ours, so a good signature shows in the *kind* of refusal.

use auth::{
    Claim, ClaimFault, Keys, Malformed, SigningKey, TokenError, Untrusted, VerifyingKey, parse_jwks, verify,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::forge::{after, rules};

const NO_USER: TokenError = TokenError::Claim(Claim::Sub, ClaimFault::Missing);
const WRONG_SIGNATURE: TokenError = TokenError::Untrusted(Untrusted::Signature);

/// The claims of RFC 7515, appendices A.1 to A.3, and RFC 7519, section 3.1.
const JOE: &str =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

fn check(keys: &Keys, token: &str, good_signature: TokenError) {
    assert_eq!(verify(keys, &rules(), token, after(0)), Err(good_signature));
    let (signed, signature) = token.rsplit_once('.').expect("three parts");
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
    bytes[3] ^= 1;
    let other = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(bytes));
    assert_eq!(verify(keys, &rules(), &other, after(0)), Err(WRONG_SIGNATURE));
}

fn jwks(key: &str) -> Keys {
    let set = format!("{{\"keys\":[{key}]}}");
    Keys::new(parse_jwks(set.as_bytes()).expect("a usable key")).expect("one key")
}

#[test]
fn rfc_7515_a1_hs256() {
    let key = r#"{"kty":"oct","alg":"HS256",
        "k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#;
    let token =
        format!("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.{JOE}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    check(&jwks(key), &token, NO_USER);
}

#[test]
fn rfc_7515_a2_rs256() {
    let key = r#"{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}"#;
    let token = format!(
        "eyJhbGciOiJSUzI1NiJ9.{JOE}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
    );
    check(&jwks(key), &token, NO_USER);
}

#[test]
fn rfc_7515_a3_es256() {
    let key = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
    let token = format!(
        "eyJhbGciOiJFUzI1NiJ9.{JOE}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    );
    check(&jwks(key), &token, NO_USER);
}

#[test]
fn rfc_8037_a4_ed25519() {
    let key = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    // What is signed there is a sentence, not an object.
    let sentence = TokenError::Malformed(Malformed::Claims);
    check(&jwks(key), token, sentence);

    let seed = URL_SAFE_NO_PAD.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").expect("base64url");
    let signing =
        SigningKey::ed25519_from_seed(seed.as_slice().try_into().expect("32 bytes")).expect("a key");
    check(&Keys::new(vec![signing.verifying_key()]).expect("one key"), token, sentence);
}

#[test]
fn rfc_7519_6_1_unsecured_is_refused() {
    let keys = Keys::new(vec![VerifyingKey::from_secret(&[1; 32]).expect("a key")]).expect("one key");
    let token = format!("eyJhbGciOiJub25lIn0.{JOE}.");
    assert_eq!(
        verify(&keys, &rules(), &token, after(0)),
        Err(TokenError::Untrusted(Untrusted::AlgorithmMismatch))
    );
}
