//! How is a device given its key? For the document of the API.

use engine::directory::device::PskIdentity;
use engine::directory::psk::{KEY_CHARACTERS_MAX, KEY_CHARACTERS_MIN, KeyFormat};

use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::words::Word;

/// POST.
pub(in crate::api) fn give() -> Operation {
    let taken = "Another device shows itself under this identity.";
    Operation::new(
        "setDeviceKey",
        Tag::Devices,
        "Give a device its pre-shared key",
    )
    .description("The key is kept sealed and is never shown again. It replaces any other.")
    .json(key(), "The key.")
    .answer_empty(204, "The device has the key.")
    .refusal(409, &["DEVICE_EXISTS"], taken)
}

fn key() -> Schema {
    let plain = Schema::text_of(KEY_CHARACTERS_MIN..=KEY_CHARACTERS_MAX);
    let hex = plain.clone().pattern("^([0-9A-Fa-f]{2})+$");
    let plain = with(KeyFormat::Text, plain.example("correct horse"), "The key.");
    let hex = with(
        KeyFormat::Hex,
        hex.example("00112233445566778899aabbccddeeff"),
        "The key; two digits are one byte of it.",
    );
    Schema::one_of([plain.titled("Text"), hex.titled("Hexadecimal")]).named("DeviceKey")
}

fn with(format: KeyFormat, key: Schema, why: &str) -> Schema {
    let identity = Schema::text_of(1..=PskIdentity::BYTES_MAX).pattern(names::PRINTABLE);
    Schema::closed()
        .must(
            "format",
            Schema::only(format.word()),
            "How the key is written.",
        )
        .must("secretKey", key, why)
        .may(
            "identity",
            identity.example("meter-7"),
            "What the device calls itself when it shows the key; its `endpoint` where nothing \
             was ever said.",
        )
}
