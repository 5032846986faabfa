//! How is a raw public key written in a request?

use engine::base64_text;
use engine::credentials::{InvalidPublicKey, RawPublicKey};

/// What a public key in PEM begins and ends with (RFC 7468 section 13).
const PEM: (&str, &str) = ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----");

/// A SubjectPublicKeyInfo, in PEM or in base64 alone.
pub(crate) fn parse_public_key(text: &str) -> Result<RawPublicKey, InvalidPublicKey> {
    let text = text.trim();
    let inner = text.strip_prefix(PEM.0).map(|it| it.strip_suffix(PEM.1));
    let base64 = inner.unwrap_or(Some(text)).ok_or(InvalidPublicKey)?;
    let base64: String = base64.split_ascii_whitespace().collect();
    let der = base64_text::decode(&base64).map_err(|_| InvalidPublicKey)?;
    RawPublicKey::from_spki(&der)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE64: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg\
                          9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==";

    #[test]
    fn a_public_key_is_read_from_pem_and_from_base64() {
        let key = parse_public_key(BASE64).unwrap();
        let (first, second) = BASE64.split_at(64);
        let pem = format!("{}\n{first}\r\n{second}\n{}\n", PEM.0, PEM.1);
        assert_eq!(parse_public_key(&pem), Ok(key));
        let unended = format!("{}\n{BASE64}", PEM.0);
        let private = pem.replace("PUBLIC", "PRIVATE");
        for wrong in ["", "x", &BASE64[4..], &unended, &private] {
            assert_eq!(parse_public_key(wrong), Err(InvalidPublicKey), "{wrong}");
        }
    }
}
