//! How is a pre-shared key in a body parsed, and sealed for its device?

use zeroize::Zeroizing;

use engine::directory::credentials::with_psk;
use engine::directory::psk::{PskFormat, PskIdentity, parse_key};
use engine::profile::Profile;
use engine::sealed::Sealed;
use engine::sealing::SecretOwner;

use crate::api::Api;
use crate::api::fields::Fields;
use crate::api::words::Word;

/// A pre-shared key that a caller gave, or that was generated.
#[derive(Clone)]
pub(in crate::api) struct NewPsk {
    /// Its identity; by default the current one of the device.
    pub(super) identity: Option<PskIdentity>,
    /// The key.
    pub(super) key: Zeroizing<Vec<u8>>,
}

impl NewPsk {
    /// The device with this key, sealed for it.
    pub(in crate::api) fn given_to(&self, was: &Profile, api: &Api) -> Profile {
        let context = SecretOwner::Device(was.key()).context();
        let sealed = api.master_key.seal(&self.key, &context);
        with_psk(was, self.identity.as_ref(), sealed, api.clock.now())
    }

    /// The key in hexadecimal.
    pub(super) fn hex(&self) -> String {
        self.key.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Api {
    /// Whether two secrets of the same owner are the same.
    pub(in crate::api) fn is_same_secret(
        &self,
        owner: SecretOwner<'_>,
        one: &Sealed,
        other: &Sealed,
    ) -> bool {
        let opened = |sealed| self.master_key.open(sealed, &owner.context());
        match (opened(one), opened(other)) {
            (Ok(one), Ok(other)) => one == other,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }
}

/// The key in the fields of a body.
pub(in crate::api) fn read_psk(fields: &mut Fields) -> Option<NewPsk> {
    let identity = fields.optional("identity", PskIdentity::parse);
    let format = fields.required("format", PskFormat::read);
    let text = fields.required("secretKey", |text| Ok::<_, String>(text.to_owned()));
    match parse_key(format?, &Zeroizing::new(text?)) {
        Ok(key) => Some(NewPsk { identity, key }),
        Err(fault) => {
            fields.fault("secretKey", fault);
            None
        }
    }
}
