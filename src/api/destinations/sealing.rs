//! How are the secrets of a destination encrypted? Bound to the destination, so that another one
//! cannot decrypt them.

use engine::directory::destination::SealedField;
use engine::ids::DestinationId;
use engine::sealed::Sealed;
use engine::sealing::SecretOwner;

use crate::api::Api;

impl Api {
    /// Encrypts a field of a destination.
    pub(in crate::api) fn seal_for(
        &self,
        id: DestinationId,
        field: SealedField<'_>,
        text: &str,
    ) -> Sealed {
        let context = SecretOwner::Destination(id, field).context();
        self.master_key.seal(text.as_bytes(), &context)
    }
}
