//! Which operation sets the pre-shared key of a device? The OpenAPI description.

use engine::directory::psk::{KEY_CHARACTERS_MAX, KEY_CHARACTERS_MIN, PskFormat, PskIdentity};

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::words::Word;

/// POST.
pub(in crate::api) fn give() -> ApiOperation {
    let text = "Sets or replaces the pre-shared key (PSK) of a device. The key is stored \
                encrypted and never returned.";
    let taken = "Another device has this PSK identity.";
    ApiOperation::new("setDeviceKey", Tag::Devices, "Set the key of a device")
        .description(text)
        .json(key(), "The key.")
        .answer_empty(204, "The key is set.")
        .refusal(409, &["DEVICE_EXISTS"], taken)
}

fn key() -> Schema {
    let plain = Schema::text_of(KEY_CHARACTERS_MIN..=KEY_CHARACTERS_MAX);
    let hex = plain.clone().pattern("^([0-9A-Fa-f]{2})+$");
    let plain = with(PskFormat::Text, plain.example("correct horse"), "The key.");
    let hex = with(
        PskFormat::Hex,
        hex.example("00112233445566778899aabbccddeeff"),
        "The key in hexadecimal, two digits per byte.",
    );
    Schema::one_of([plain.titled("Text"), hex.titled("Hexadecimal")]).named("DeviceKey")
}

fn with(format: PskFormat, key: Schema, why: &str) -> Schema {
    let identity = Schema::text_of(1..=PskIdentity::BYTES_MAX).pattern(names::PRINTABLE);
    Schema::closed()
        .must(
            "format",
            Schema::only(format.word()),
            "The encoding of `secretKey`.",
        )
        .must("secretKey", key, why)
        .may(
            "identity",
            identity.example("meter-7"),
            "The PSK identity. Default: the current identity, which is the `endpoint` until one \
             is set.",
        )
}
