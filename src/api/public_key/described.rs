//! Which operations set and remove the raw public key of a device? The OpenAPI descriptions.

use crate::api::openapi::{ApiOperation, Schema, Tag};

/// A key in base64.
const BASE64: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE[A-Za-z0-9+/]{85}[AQgw]==";

/// A key in PEM.
const PEM: &str = "^-----BEGIN PUBLIC KEY-----\\n\
                   MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE[A-Za-z0-9+/]{28}\\n\
                   [A-Za-z0-9+/]{57}[AQgw]==\\n-----END PUBLIC KEY-----\\n?$";

/// A key in base64, as an example.
pub(in crate::api) const PUBLIC_KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vObl\
                                             Y6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84z\
                                             V2sxXs7LtkBoN79R9Q==";

/// What a key in a body is.
pub(in crate::api) const PUBLIC_KEY_IS: &str = "The SubjectPublicKeyInfo of a key on P-256 \
                                                (`secp256r1`) with an uncompressed point, in \
                                                PEM, or its DER in base64.";

/// PUT.
pub(in crate::api) fn put() -> ApiOperation {
    let text = "Sets or replaces the raw public key (RFC 7250) with which the device proves its \
                identity over DTLS. The previous key stays valid until the first use of the new \
                one. A key belongs to one device.";
    let summary = "Set the public key of a device";
    ApiOperation::new("setDevicePublicKey", Tag::Devices, summary)
        .description(text)
        .json(public_key(), "The key.")
        .answer_empty(204, "The key is set.")
        .refusal(
            409,
            &["DEVICE_EXISTS"],
            "Another device has this public key.",
        )
}

/// DELETE.
pub(in crate::api) fn remove() -> ApiOperation {
    let text = "Removes the raw public key of a device, and the previous one if it is still valid.";
    let summary = "Remove the public key of a device";
    ApiOperation::new("deleteDevicePublicKey", Tag::Devices, summary)
        .description(text)
        .answer_empty(204, "The device has no public key.")
}

fn public_key() -> Schema {
    Schema::closed()
        .must("publicKey", public_key_text(), PUBLIC_KEY_IS)
        .named("DevicePublicKey")
}

/// A key in a body.
pub(in crate::api) fn public_key_text() -> Schema {
    let base64 = Schema::text().pattern(&format!("^{BASE64}$"));
    let pem = Schema::text().pattern(PEM);
    let base64 = base64.example(PUBLIC_KEY).titled("Base64");
    Schema::one_of([base64, pem.titled("PEM")])
}
