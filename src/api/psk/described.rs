//! Which operations set, generate and remove the pre-shared key of a device? The OpenAPI
//! descriptions.

use engine::directory::psk::{KEY_CHARACTERS_MAX, KEY_CHARACTERS_MIN, PskFormat, PskIdentity};

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::words::Word;

/// POST.
pub(in crate::api) fn give() -> ApiOperation {
    let text = "Sets or replaces the pre-shared key (PSK) of a device. The key is stored \
                encrypted and never returned. The previous key stays valid until the first use of \
                the new one; to end it at once, remove it first.";
    let taken = "Another device has this PSK identity.";
    ApiOperation::new("setDeviceKey", Tag::Devices, "Set the key of a device")
        .description(text)
        .json(device_key(), "The key.")
        .answer_empty(204, "The key is set.")
        .refusal(409, &["DEVICE_EXISTS"], taken)
}

/// POST, generated.
pub(in crate::api) fn generate() -> ApiOperation {
    let text = "Generates a pre-shared key (PSK) of 128 bits for a device and sets it as \
                `setDeviceKey` does. Only this response contains the key.";
    let summary = "Generate the key of a device";
    ApiOperation::new("generateDeviceKey", Tag::Devices, summary)
        .description(text)
        .json(generation(), "The identity of the key.")
        .answer(201, generated(), "The key is set.")
        .once(&["DEVICE_EXISTS"], "another device has this PSK identity.")
}

/// DELETE.
pub(in crate::api) fn remove() -> ApiOperation {
    let text = "Removes the pre-shared key of a device, and the previous one if it is still valid. \
                The device keeps its PSK identity.";
    ApiOperation::new(
        "deleteDeviceKey",
        Tag::Devices,
        "Remove the key of a device",
    )
    .description(text)
    .answer_empty(204, "The device has no pre-shared key.")
}

fn generation() -> Schema {
    Schema::closed()
        .may("identity", identity(), IDENTITY)
        .named("DeviceKeyGeneration")
}

fn generated() -> Schema {
    let key = Schema::text().example("00112233445566778899aabbccddeeff");
    Schema::object()
        .must("identity", identity(), "The PSK identity.")
        .must("secretKey", key, "The key in hexadecimal.")
        .must(
            "format",
            Schema::only(PskFormat::Hex.word()),
            "The encoding of `secretKey`.",
        )
        .named("GeneratedDeviceKey")
}

fn identity() -> Schema {
    let identity = Schema::text_of(1..=PskIdentity::BYTES_MAX).pattern(names::PRINTABLE);
    identity.example("meter-7")
}

const IDENTITY: &str = "The PSK identity. Default: the current identity, which is the `endpoint` \
                        until one is set.";

/// A key.
pub(in crate::api) fn device_key() -> Schema {
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
    Schema::closed()
        .must(
            "format",
            Schema::only(format.word()),
            "The encoding of `secretKey`.",
        )
        .must("secretKey", key, why)
        .may("identity", identity(), IDENTITY)
}
