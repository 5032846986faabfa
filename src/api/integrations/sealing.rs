//! How are the secrets of a webhook encrypted? Bound to the webhook, so that another one cannot
//! decrypt them.

use actors::delivery::{header_context, secret_context};
use engine::directory::destination::SealedField;
use engine::ids::DestinationId;
use engine::sealed::Sealed;

use crate::api::Api;

impl Api {
    /// Encrypts a part of a webhook.
    pub(super) fn seal_for(&self, id: DestinationId, part: SealedField<'_>, text: &str) -> Sealed {
        let context = match part {
            SealedField::Header(name) => header_context(id, name),
            SealedField::Secret => secret_context(id),
        };
        self.master_key.seal(text.as_bytes(), &context)
    }
}
