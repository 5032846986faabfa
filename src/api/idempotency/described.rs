//! How does the OpenAPI document describe calls with an `Idempotency-Key`?

use engine::idempotency::KEY_CHARACTERS_MAX;

use super::HEADER;
use crate::api::openapi::{ApiOperation, Schema};

const ONCE: &str = "A key of your choice that identifies this call: 1 to 255 visible ASCII \
                    characters. Repeating the call with the same key within 24 hours (by \
                    default) returns the original response and creates nothing. A rejected call \
                    does not use up its key.";

const KEY_REFUSED: &str = "`IDEMPOTENCY_KEY_IN_USE`: a call with this key is in progress; see \
                           `Retry-After`. `IDEMPOTENCY_KEY_REUSED`: the key was used for a \
                           different call.";

impl ApiOperation {
    /// With an idempotency key, and with the other refusals of status 409.
    pub(in crate::api) fn once(self, codes: &[&'static str], why: &str) -> Self {
        let of_keys = ["IDEMPOTENCY_KEY_IN_USE", "IDEMPOTENCY_KEY_REUSED"];
        let why = match codes {
            [code] if !why.contains(code) => format!("`{code}`: {why} {KEY_REFUSED}"),
            [] => KEY_REFUSED.to_owned(),
            _ => format!("{why} {KEY_REFUSED}"),
        };
        self.header(HEADER, key(), ONCE)
            .refusal(409, &[codes, &of_keys].concat(), &why)
            .retried_sometimes(409)
    }
}

/// An idempotency key.
fn key() -> Schema {
    let visible = format!("^[!-~]{{1,{KEY_CHARACTERS_MAX}}}$");
    let example = "9f1c5b2e-7d43-4c8a-8a51-0b6d2f3e4a10";
    Schema::text().pattern(&visible).example(example)
}
