//! How does a customer change the identity of a device?
//!
//! A device id never changes: the key of a device is derived from it, and all its records have that
//! key.

use std::net::IpAddr;
use std::num::NonZeroU32;

use crate::change::{Batch, Change, Expect, UniqueName};
use crate::directory::device::{names_wanted, reportable};
use crate::directory::{Decision, DirectoryRefusal};
use crate::ids::{Endpoint, Iccid, Imsi, Msisdn};
use crate::profile::{Profile, SecurityRequirement};
use crate::tags::{TagsAmendment, TooManyTags};

/// A change of a device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeviceAmendment {
    /// The SIM in it.
    pub iccid: Option<Iccid>,
    /// The subscriber identity of the SIM.
    pub imsi: FieldAmendment<Imsi>,
    /// The telephone number of the SIM.
    pub msisdn: FieldAmendment<Msisdn>,
    /// The fixed address of the SIM.
    pub ip: FieldAmendment<IpAddr>,
    /// The endpoint client name it registers with.
    pub endpoint: Option<Endpoint>,
    /// Its display name.
    pub name: FieldAmendment<Box<str>>,
    /// Its tags.
    pub tags: TagsAmendment,
    /// What its datagrams are accepted over.
    pub security: Option<SecurityRequirement>,
    /// How long it may be silent before it is offline, in seconds.
    pub offline_after_s: FieldAmendment<NonZeroU32>,
}

/// A change of an optional field.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum FieldAmendment<T> {
    /// The field stays as it is.
    #[default]
    Keep,
    /// The field is removed.
    Remove,
    /// The field gets this value.
    Put(T),
}

impl<T> FieldAmendment<T> {
    /// The change with another type of value; one without a value changes nothing.
    pub fn and_then<U>(self, to: impl FnOnce(T) -> Option<U>) -> FieldAmendment<U> {
        match self {
            Self::Keep => FieldAmendment::Keep,
            Self::Remove => FieldAmendment::Remove,
            Self::Put(is) => to(is).map_or(FieldAmendment::Keep, FieldAmendment::Put),
        }
    }

    /// The new value of a field that had the value `was`.
    pub fn apply(self, was: Option<T>) -> Option<T> {
        match self {
            Self::Keep => was,
            Self::Remove => None,
            Self::Put(is) => Some(is),
        }
    }
}

impl DeviceAmendment {
    /// The device after the change.
    ///
    /// A pre-shared key keeps its PSK identity. Without a key the PSK identity is the endpoint
    /// name, also a changed one.
    pub fn apply(self, was: Profile) -> Result<Profile, TooManyTags> {
        Ok(Profile {
            iccid: self.iccid.unwrap_or(was.iccid),
            imsi: self.imsi.apply(was.imsi),
            msisdn: self.msisdn.apply(was.msisdn),
            ip: self.ip.apply(was.ip).map(|ip| ip.to_canonical()),
            endpoint: self.endpoint.unwrap_or(was.endpoint),
            name: self.name.apply(was.name),
            tags: was.tags.amended(self.tags)?,
            security: self.security.unwrap_or(was.security),
            offline_after_s: self.offline_after_s.apply(was.offline_after_s),
            ..was
        })
    }
}

/// What must be free for a change of a device: the unique names and the address that it would gain.
pub fn names_gained(was: &Profile, is: &Profile) -> Vec<UniqueName> {
    let had = names_wanted(was);
    let mut names = names_wanted(is);
    names.retain(|name| !had.contains(name));
    names
}

/// Changes a device; `taken` are the gained names that other devices have.
pub fn amend_device(
    was: Profile,
    is: Profile,
    taken: Vec<UniqueName>,
) -> Result<Decision<Profile>, DirectoryRefusal> {
    if !taken.is_empty() {
        return Err(DirectoryRefusal::DeviceExists(reportable(&is, taken)));
    }
    let mut expects = vec![Expect::Profile(Box::new(was.clone()))];
    expects.extend(names_gained(&was, &is).into_iter().map(Expect::Free));
    let put = || Change::PutDevice {
        was: Some(Box::new(was.clone())),
        profile: Box::new(is.clone()),
    };
    let batch = Batch {
        expects,
        changes: (was != is).then(put).into_iter().collect(),
        ..Batch::default()
    };
    Ok(Decision { batch, answer: is })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::credentials::with_psk;
    use crate::directory::device::{NewDevice, draft_device};
    use crate::ids::{CustomerId, DeviceId};
    use crate::moment::{Moment, Timestamp};
    use crate::sealed::Sealed;
    use crate::tags::{Tag, Tags};

    #[test]
    fn missing_fields_keep_their_value() {
        assert_eq!(DeviceAmendment::default().apply(meter()), Ok(meter()));
    }

    #[test]
    fn optional_fields_can_be_removed_and_all_but_the_device_id_replaced() {
        let bare = DeviceAmendment {
            imsi: FieldAmendment::Remove,
            msisdn: FieldAmendment::Remove,
            ip: FieldAmendment::Remove,
            name: FieldAmendment::Remove,
            tags: TagsAmendment::Clear,
            offline_after_s: FieldAmendment::Remove,
            ..DeviceAmendment::default()
        };
        let bare = bare.apply(meter()).unwrap();
        let expected = Profile {
            imsi: None,
            msisdn: None,
            ip: None,
            name: None,
            tags: Tags::default(),
            offline_after_s: None,
            ..meter()
        };
        assert_eq!(bare, expected);
        let floor = Tag::parse("floor:2").unwrap();
        let other = DeviceAmendment {
            iccid: Some(Iccid::parse("8902").unwrap()),
            imsi: FieldAmendment::Put(Imsi::parse("9012").unwrap()),
            msisdn: FieldAmendment::Put(Msisdn::parse("4912").unwrap()),
            ip: FieldAmendment::Put("::ffff:10.0.0.2".parse().unwrap()),
            endpoint: Some(Endpoint::parse("ep-2").unwrap()),
            name: FieldAmendment::Put("Attic".into()),
            tags: TagsAmendment::Merge(vec![(floor.key.clone(), Some(floor.value.clone()))]),
            security: Some(SecurityRequirement::Dtls),
            offline_after_s: FieldAmendment::Put(NonZeroU32::MIN),
        };
        let expected = Profile {
            iccid: Iccid::parse("8902").unwrap(),
            imsi: Some(Imsi::parse("9012").unwrap()),
            msisdn: Some(Msisdn::parse("4912").unwrap()),
            ip: Some("10.0.0.2".parse().unwrap()),
            endpoint: Endpoint::parse("ep-2").unwrap(),
            name: Some("Attic".into()),
            tags: Tags::of([floor]).unwrap(),
            security: SecurityRequirement::Dtls,
            offline_after_s: Some(NonZeroU32::MIN),
            ..meter()
        };
        assert_eq!(other.apply(bare), Ok(expected));
    }

    #[test]
    fn a_change_expects_the_profile_that_was_read_and_free_names() {
        let imsi = Imsi::parse("9012").unwrap();
        let is = DeviceAmendment {
            imsi: FieldAmendment::Put(imsi.clone()),
            ip: FieldAmendment::Remove,
            ..DeviceAmendment::default()
        }
        .apply(meter())
        .unwrap();
        let batch = Batch {
            expects: vec![
                Expect::Profile(Box::new(meter())),
                Expect::Free(UniqueName::Imsi(imsi)),
            ],
            changes: vec![Change::PutDevice {
                was: Some(Box::new(meter())),
                profile: Box::new(is.clone()),
            }],
            ..Batch::default()
        };
        let decided = amend_device(meter(), is.clone(), vec![]);
        assert_eq!(decided, Ok(Decision { batch, answer: is }));
    }

    #[test]
    fn an_unchanged_device_is_not_written() {
        let decided = amend_device(meter(), meter(), vec![]).unwrap();
        assert_eq!(decided.batch.changes, []);
        assert_eq!(
            decided.batch.expects,
            [Expect::Profile(Box::new(meter()))],
            "the answer still depends on it"
        );
    }

    #[test]
    fn a_name_of_another_device_is_refused() {
        let name = UniqueName::Imsi(Imsi::parse("9012").unwrap());
        let refused = amend_device(meter(), meter(), vec![name.clone()]);
        assert_eq!(refused, Err(DirectoryRefusal::DeviceExists(vec![name])));
    }

    #[test]
    fn the_psk_identity_follows_the_endpoint_until_a_key_is_set() {
        let moved = |was: &Profile| {
            let endpoint = Endpoint::parse("ep-2").ok();
            let amendments = DeviceAmendment {
                endpoint,
                ..DeviceAmendment::default()
            };
            amendments.apply(was.clone()).unwrap()
        };
        let endpoint = UniqueName::Endpoint(Endpoint::parse("ep-2").unwrap());
        let identity = UniqueName::PskIdentity("ep-2".into());
        let is = moved(&meter());
        assert_eq!(is.psk_identity(), "ep-2");
        let gained = names_gained(&meter(), &is);
        assert_eq!(gained, [endpoint.clone(), identity.clone()]);
        let refused = amend_device(meter(), is, vec![endpoint.clone(), identity]);
        assert_eq!(
            refused,
            Err(DirectoryRefusal::DeviceExists(vec![endpoint.clone()]))
        );

        let key = Sealed::from_bytes(Box::from(*b"sealed"));
        let keyed = with_psk(&meter(), None, key, Timestamp::from_ms(2));
        let is = moved(&keyed);
        assert_eq!(is.psk_identity(), meter().psk_identity());
        assert_eq!(names_gained(&keyed, &is), [endpoint]);
    }

    fn meter() -> Profile {
        let new = NewDevice {
            device: DeviceId::parse("meter").ok(),
            iccid: Iccid::parse("8901").ok(),
            imsi: Imsi::parse("9011").ok(),
            msisdn: Msisdn::parse("4911").ok(),
            ip: "10.0.0.1".parse().ok(),
            endpoint: Endpoint::parse("ep-1").ok(),
            name: Some("Cellar".into()),
            tags: Tags::of([Tag::parse("site:berlin").unwrap()]).unwrap(),
            security: SecurityRequirement::Any,
            offline_after_s: NonZeroU32::new(600),
        };
        let mut m = Moment::new(Timestamp::from_ms(1_000), 7);
        draft_device(&mut m, &CustomerId::parse("acme").unwrap(), new).unwrap()
    }
}
