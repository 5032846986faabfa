//! Decisions about the keys of a device. Each is a change of its profile, so
//! [`amend_device`](super::amending::amend_device) completes it.

use crate::change::{Batch, Change, Expect};
use crate::credentials::{Credential, DeviceCredentials, Psk, RawPublicKey};
use crate::directory::psk::PskIdentity;
use crate::directory::{DirectoryRefusal, guarded};
use crate::moment::Timestamp;
use crate::profile::Profile;
use crate::sealed::Sealed;

/// A key with which a device completed a handshake.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UsedKey {
    /// One of its pre-shared keys.
    Psk(Psk),
    /// One of its public keys.
    PublicKey(RawPublicKey),
}

/// The device with a new pre-shared key; without an identity it keeps its current one.
pub fn with_psk(
    was: &Profile,
    identity: Option<&PskIdentity>,
    key: Sealed,
    at: Timestamp,
) -> Profile {
    let identity = identity.map_or(was.psk_identity(), PskIdentity::as_str);
    let psk = Psk {
        identity: identity.into(),
        key,
    };
    let before = was.credentials.clone();
    with(
        was,
        DeviceCredentials {
            psk: Some(Credential::replacing(before.psk, psk, at)),
            kept_identity: None,
            ..before
        },
    )
}

/// The device with the keys that a bootstrap issues; it keeps its PSK identity.
pub fn with_issued_keys(
    was: &Profile,
    psk: Option<Sealed>,
    public_key: Option<RawPublicKey>,
    at: Timestamp,
) -> Profile {
    let psk = psk.map(|key| Psk {
        identity: was.psk_identity().into(),
        key,
    });
    with(was, was.credentials.clone().issuing(psk, public_key, at))
}

/// The device without a pre-shared key. It keeps its PSK identity.
pub fn without_psk(was: &Profile) -> Result<Profile, DirectoryRefusal> {
    let before = was.credentials.clone();
    let psk = before.psk.clone().or(before.issued.clone());
    let psk = psk.ok_or(DirectoryRefusal::KeyUnknown)?;
    let kept = Some(psk.key.identity).filter(|it| **it != *was.endpoint.as_str());
    let without = DeviceCredentials {
        psk: None,
        issued: None,
        kept_identity: kept,
        ..before
    };
    Ok(with(was, without))
}

/// The device with a new raw public key.
pub fn with_public_key(was: &Profile, key: RawPublicKey, at: Timestamp) -> Profile {
    let before = was.credentials.clone();
    with(
        was,
        DeviceCredentials {
            public_key: Some(Credential::replacing(before.public_key, key, at)),
            ..before
        },
    )
}

/// The device without a raw public key.
pub fn without_public_key(was: &Profile) -> Result<Profile, DirectoryRefusal> {
    let before = was.credentials.clone();
    if before.public_keys().next().is_none() {
        return Err(DirectoryRefusal::KeyUnknown);
    }
    let without = DeviceCredentials {
        public_key: None,
        issued_public_key: None,
        ..before
    };
    Ok(with(was, without))
}

/// What a handshake with a key changes: the first use of a new key ends the previous one. Nothing,
/// if there is none.
pub fn key_used(was: &Profile, used: &UsedKey, at: Timestamp) -> Option<Batch> {
    let before = was.credentials.clone();
    let is = match used {
        UsedKey::Psk(key) => before.psk_used(key, at)?,
        UsedKey::PublicKey(key) => before.public_key_used(key, at)?,
    };
    let put = Change::PutDevice {
        was: Some(Box::new(was.clone())),
        profile: Box::new(with(was, is)),
    };
    Some(guarded(vec![Expect::Profile(Box::new(was.clone()))], put))
}

fn with(was: &Profile, credentials: DeviceCredentials) -> Profile {
    Profile {
        credentials,
        ..was.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::UniqueName;
    use crate::directory::amending::{amend_device, names_gained};
    use crate::directory::device::{NewDevice, draft_device};
    use crate::ids::{CustomerId, DeviceId};
    use crate::moment::Moment;

    #[test]
    fn a_key_without_an_identity_keeps_the_one_the_device_has() {
        let keyed = with_psk(&meter(), None, sealed(1), at(1));
        assert_eq!(keyed.psk_identity(), "meter");
        assert_eq!(names_gained(&meter(), &keyed), []);
        let named = with_psk(&keyed, Some(&identity("key-7")), sealed(2), at(2));
        let again = with_psk(&named, None, sealed(3), at(3));
        assert_eq!(again.psk_identity(), "key-7");
    }

    #[test]
    fn a_new_psk_identity_must_be_free_and_the_previous_one_stays_taken() {
        let first = with_psk(&meter(), None, sealed(1), at(1));
        let is = with_psk(&first, Some(&identity("key-7")), sealed(2), at(2));
        let wanted = UniqueName::PskIdentity("key-7".into());
        assert_eq!(names_gained(&first, &is), vec![wanted.clone()]);
        let names = UniqueName::all_of(&is);
        assert!(names.contains(&UniqueName::PskIdentity("meter".into())));
        let decided = amend_device(first.clone(), is.clone(), vec![]).unwrap();
        let expects = [
            Expect::Profile(Box::new(first.clone())),
            Expect::Free(wanted.clone()),
        ];
        assert_eq!(decided.batch.expects, expects);
        let refused = amend_device(first, is, vec![wanted.clone()]);
        assert_eq!(refused, Err(DirectoryRefusal::DeviceExists(vec![wanted])));
    }

    #[test]
    fn a_removal_ends_every_key_and_needs_no_name() {
        let named = with_psk(&meter(), Some(&identity("key-7")), sealed(1), at(1));
        let is = without_psk(&named).unwrap();
        assert_eq!(is.psk_identity(), "key-7");
        assert_eq!(names_gained(&named, &is), []);
        assert_eq!(is.credentials.psks_of("key-7").count(), 0);
        assert_eq!(without_psk(&is), Err(DirectoryRefusal::KeyUnknown));

        let unnamed = with_psk(&meter(), None, sealed(1), at(1));
        assert_eq!(without_psk(&unnamed), Ok(meter()));
        let again = with_psk(&is, None, sealed(2), at(2));
        assert_eq!(again.psk_identity(), "key-7");
        assert_eq!(again.credentials.kept_identity, None);
    }

    #[test]
    fn the_first_use_of_a_new_key_ends_the_previous_one() {
        let first = with_psk(&meter(), None, sealed(1), at(1));
        let both = with_psk(&first, None, sealed(2), at(2));
        let used = |byte| {
            UsedKey::Psk(Psk {
                identity: "meter".into(),
                key: sealed(byte),
            })
        };
        assert_eq!(key_used(&first, &used(1), at(3)), None);
        assert_eq!(key_used(&both, &used(1), at(3)), None);
        let batch = key_used(&both, &used(2), at(3)).unwrap();
        let [Change::PutDevice { was, profile }] = &batch.changes[..] else {
            panic!("{batch:?}");
        };
        assert_eq!(batch.expects, [Expect::Profile(Box::new(both.clone()))]);
        assert_eq!(was.as_deref(), Some(&both));
        let keys: Vec<_> = profile.credentials.psks_of("meter").collect();
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].key, sealed(2));
        assert_eq!(key_used(profile, &used(2), at(4)), None);
    }

    #[test]
    fn a_public_key_is_replaced_like_a_pre_shared_key() {
        let key = |byte| RawPublicKey::from_point(&[4, byte].repeat(33)[..65]).unwrap();
        let first = with_public_key(&meter(), key(1), at(1));
        assert_eq!(
            names_gained(&meter(), &first),
            [UniqueName::PublicKey(key(1))]
        );
        let both = with_public_key(&first, key(2), at(2));
        assert!(both.credentials.has_public_key(&key(1)));
        assert_eq!(key_used(&both, &UsedKey::PublicKey(key(1)), at(3)), None);
        let batch = key_used(&both, &UsedKey::PublicKey(key(2)), at(3)).unwrap();
        let [Change::PutDevice { profile, .. }] = &batch.changes[..] else {
            panic!("{batch:?}");
        };
        assert!(!profile.credentials.has_public_key(&key(1)));
        assert_eq!(without_public_key(profile), Ok(meter()));
        assert_eq!(
            without_public_key(&meter()),
            Err(DirectoryRefusal::KeyUnknown)
        );
    }

    fn meter() -> Profile {
        let new = NewDevice {
            device: DeviceId::parse("meter").ok(),
            ..NewDevice::default()
        };
        let mut m = Moment::new(at(0), 7);
        draft_device(&mut m, &CustomerId::parse("acme").unwrap(), new).unwrap()
    }

    fn identity(text: &str) -> PskIdentity {
        PskIdentity::parse(text).unwrap()
    }

    fn sealed(byte: u8) -> Sealed {
        Sealed::from_bytes(Box::from([byte]))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_ms(1_000 * second)
    }
}
