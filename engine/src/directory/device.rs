//! Decisions about devices and their identities.

use std::net::IpAddr;

use crate::change::{Batch, Change, Counter, CounterDelta, Expect, UniqueName};
use crate::directory::{Decision, DirectoryRefusal, decided, draw_number, guarded};
use crate::ids::{
    CustomerId, DeviceId, DeviceKey, Endpoint, Iccid, Imsi, InvalidId, Msisdn, check,
};
use crate::moment::Moment;
use crate::profile::{Profile, Psk};
use crate::sealed::Sealed;
use crate::tags::Tags;

/// A device to be created, with the fields that its customer gave.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NewDevice {
    /// Its device id; by default its ICCID.
    pub device: Option<DeviceId>,
    /// The SIM in it; by default its device id.
    pub iccid: Option<Iccid>,
    /// The subscriber identity of the SIM.
    pub imsi: Option<Imsi>,
    /// The telephone number of the SIM.
    pub msisdn: Option<Msisdn>,
    /// The fixed address of the SIM.
    pub ip: Option<IpAddr>,
    /// The endpoint client name it registers with; by default its device id.
    pub endpoint: Option<Endpoint>,
    /// Its display name.
    pub name: Option<Box<str>>,
    /// Its tags.
    pub tags: Tags,
}

/// A device was given neither a device id nor an ICCID.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("deviceId or iccid is required")]
pub struct MissingIdentifier;

/// The device as it would be created. It has its unique names, so that the caller can check whether
/// they are free.
pub fn draft_device(
    m: &mut Moment,
    customer: &CustomerId,
    new: NewDevice,
) -> Result<Profile, MissingIdentifier> {
    let (device, iccid) = match (new.device, new.iccid) {
        (Some(device), Some(iccid)) => (device, iccid),
        (Some(device), None) => {
            let iccid = Iccid::parse(device.as_str()).expect("both allow the same texts");
            (device, iccid)
        }
        (None, Some(iccid)) => {
            let device = DeviceId::parse(iccid.as_str()).expect("both allow the same texts");
            (device, iccid)
        }
        (None, None) => return Err(MissingIdentifier),
    };
    let endpoint = new.endpoint.unwrap_or_else(|| {
        Endpoint::parse(device.as_str()).expect("a device id is shorter and plainer")
    });
    Ok(Profile {
        customer: customer.clone(),
        device,
        number: draw_number(m),
        iccid,
        imsi: new.imsi,
        msisdn: new.msisdn,
        ip: new.ip.map(|ip| ip.to_canonical()),
        endpoint,
        name: new.name,
        psk: None,
        created_at: m.now(),
        tags: new.tags,
    })
}

/// What must be free for a device to be created: its unique names, and its address.
pub fn names_wanted(profile: &Profile) -> Vec<UniqueName> {
    let mut names = UniqueName::all_of(profile);
    names.extend(UniqueName::address_of(profile));
    names
}

/// Creates a device; `taken` are those of [`names_wanted`] that others have.
pub fn create_device(
    profile: Profile,
    taken: Vec<UniqueName>,
) -> Result<Decision<Profile>, DirectoryRefusal> {
    if !taken.is_empty() {
        return Err(DirectoryRefusal::DeviceExists(reportable(&profile, taken)));
    }
    let mut expects = vec![Expect::Taken(UniqueName::Customer(
        profile.customer.clone(),
    ))];
    expects.extend(names_wanted(&profile).into_iter().map(Expect::Free));
    let counter = Counter::Devices(profile.customer.clone());
    let put = Change::PutDevice {
        was: None,
        profile: Box::new(profile.clone()),
    };
    let batch = Batch {
        adds: vec![CounterDelta { counter, delta: 1 }],
        ..guarded(expects, put)
    };
    Ok(Decision {
        batch,
        answer: profile,
    })
}

/// The taken names that are reported to the customer. The PSK identity defaults to the endpoint
/// name, and one fault is enough for both.
pub(super) fn reportable(profile: &Profile, mut taken: Vec<UniqueName>) -> Vec<UniqueName> {
    let endpoint_taken = taken.contains(&UniqueName::Endpoint(profile.endpoint.clone()));
    taken.retain(|name| !(endpoint_taken && matches!(name, UniqueName::PskIdentity(_))));
    taken
}

/// The PSK identity of a device: that of its key, or the default.
pub fn psk_identity(profile: &Profile) -> &str {
    profile
        .psk
        .as_ref()
        .map_or(profile.endpoint.as_str(), |psk| &psk.identity)
}

/// Sets the pre-shared key of a device; without an identity it keeps its current one.
///
/// `holder` is the device that has the identity already, if any.
pub fn give_psk(
    profile: Option<Profile>,
    identity: Option<PskIdentity>,
    key: Sealed,
    holder: Option<DeviceKey>,
) -> Result<Decision<()>, DirectoryRefusal> {
    let was = profile.ok_or(DirectoryRefusal::DeviceUnknown)?;
    let current = UniqueName::PskIdentity(psk_identity(&was).into());
    let identity = identity.map_or_else(|| psk_identity(&was).into(), |identity| identity.0);
    let wanted = UniqueName::PskIdentity(identity.clone());
    let mut expects = vec![Expect::Profile(Box::new(was.clone()))];
    if wanted != current {
        if holder.is_some() {
            return Err(DirectoryRefusal::DeviceExists(vec![wanted]));
        }
        expects.push(Expect::Free(wanted));
    }
    let profile = Profile {
        psk: Some(Psk { identity, key }),
        ..was.clone()
    };
    let put = Change::PutDevice {
        was: Some(Box::new(was)),
        profile: Box::new(profile),
    };
    Ok(decided(expects, put, ()))
}

/// A PSK identity (RFC 4279 section 5.1), service-wide.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PskIdentity(Box<str>);

impl PskIdentity {
    /// The longest identity that every implementation supports (RFC 4279 section 5.3).
    pub const BYTES_MAX: usize = 128;

    /// Parses an identity.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        check(text, Self::BYTES_MAX, |c| !c.is_control())?;
        Ok(Self(text.into()))
    }

    /// The unique name that must be free for it.
    pub fn as_name(&self) -> UniqueName {
        UniqueName::PskIdentity(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Timestamp;

    #[test]
    fn device_id_iccid_endpoint_and_psk_identity_default_to_each_other() {
        let by_id = draft(NewDevice {
            device: device_id("meter-1"),
            ..NewDevice::default()
        });
        let by_iccid = draft(NewDevice {
            iccid: iccid("meter-1"),
            ..NewDevice::default()
        });
        assert_eq!(by_id, by_iccid);
        assert_eq!(by_id.iccid.as_str(), "meter-1");
        assert_eq!(by_id.endpoint.as_str(), "meter-1");
        assert_eq!(psk_identity(&by_id), "meter-1");
        let nameless = draft_device(&mut moment(), &acme(), NewDevice::default());
        assert_eq!(nameless, Err(MissingIdentifier));
    }

    #[test]
    fn given_identifiers_do_not_default_to_each_other() {
        let new = NewDevice {
            device: device_id("urn:imei:356938035643809"),
            iccid: iccid("8988280666000000001"),
            endpoint: Some(Endpoint::parse("meter 1").unwrap()),
            ip: Some("::ffff:10.0.0.1".parse().unwrap()),
            ..NewDevice::default()
        };
        let profile = draft(new);
        assert_eq!(profile.device.as_str(), "urn:imei:356938035643809");
        assert_eq!(profile.iccid.as_str(), "8988280666000000001");
        assert_eq!(psk_identity(&profile), "meter 1");
        assert_eq!(profile.ip, Some("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_device_is_created_if_its_names_are_free() {
        let imsi = Some(Imsi::parse("901405100000001").unwrap());
        let profile = draft(NewDevice {
            device: device_id("meter"),
            imsi,
            ..Default::default()
        });
        let decided = create_device(profile.clone(), vec![]).unwrap();
        let batch = Batch {
            expects: vec![
                Expect::Taken(UniqueName::Customer(acme())),
                Expect::Free(UniqueName::Device(profile.key())),
                Expect::Free(UniqueName::Iccid(profile.iccid.clone())),
                Expect::Free(UniqueName::Endpoint(profile.endpoint.clone())),
                Expect::Free(UniqueName::PskIdentity("meter".into())),
                Expect::Free(UniqueName::Imsi(profile.imsi.clone().unwrap())),
            ],
            changes: vec![Change::PutDevice {
                was: None,
                profile: Box::new(profile.clone()),
            }],
            adds: vec![CounterDelta {
                counter: Counter::Devices(acme()),
                delta: 1,
            }],
            ..Batch::default()
        };
        assert_eq!(
            decided,
            Decision {
                batch,
                answer: profile
            }
        );
    }

    #[test]
    fn a_device_whose_names_are_taken_is_refused_with_those_names() {
        let profile = draft(NewDevice {
            device: device_id("meter"),
            ..NewDevice::default()
        });
        let taken = vec![UniqueName::Iccid(profile.iccid.clone())];
        let refused = create_device(profile, taken.clone());
        assert_eq!(refused, Err(DirectoryRefusal::DeviceExists(taken)));
    }

    #[test]
    fn an_endpoint_name_and_an_equal_psk_identity_are_one_fault() {
        let profile = draft(NewDevice {
            device: device_id("meter"),
            ..NewDevice::default()
        });
        let endpoint = UniqueName::Endpoint(profile.endpoint.clone());
        let identity = UniqueName::PskIdentity("meter".into());
        let refused = create_device(profile.clone(), vec![endpoint.clone(), identity.clone()]);
        assert_eq!(refused, Err(DirectoryRefusal::DeviceExists(vec![endpoint])));
        let refused = create_device(profile, vec![identity.clone()]);
        assert_eq!(refused, Err(DirectoryRefusal::DeviceExists(vec![identity])));
    }

    #[test]
    fn a_key_without_an_identity_keeps_the_one_the_device_has() {
        let was = draft(NewDevice {
            device: device_id("meter"),
            ..NewDevice::default()
        });
        let decided = give_psk(Some(was.clone()), None, sealed(), None).unwrap();
        let psk = Some(Psk {
            identity: "meter".into(),
            key: sealed(),
        });
        let profile = Box::new(Profile { psk, ..was.clone() });
        let batch = Batch {
            expects: vec![Expect::Profile(Box::new(was.clone()))],
            changes: vec![Change::PutDevice {
                was: Some(Box::new(was)),
                profile,
            }],
            ..Batch::default()
        };
        assert_eq!(decided.batch, batch);
    }

    #[test]
    fn a_new_psk_identity_must_be_free() {
        let was = draft(NewDevice {
            device: device_id("meter"),
            ..NewDevice::default()
        });
        let identity = PskIdentity::parse("key-7").unwrap();
        let wanted = identity.as_name();
        let given = give_psk(Some(was.clone()), Some(identity.clone()), sealed(), None).unwrap();
        assert_eq!(
            given.batch.expects.last(),
            Some(&Expect::Free(wanted.clone()))
        );
        let holder = Some(was.key());
        let refused = give_psk(Some(was), Some(identity.clone()), sealed(), holder);
        assert_eq!(refused, Err(DirectoryRefusal::DeviceExists(vec![wanted])));
        let unknown = give_psk(None, Some(identity), sealed(), None);
        assert_eq!(unknown, Err(DirectoryRefusal::DeviceUnknown));
    }

    #[test]
    fn an_invalid_psk_identity_is_refused_with_its_reason() {
        assert_eq!(PskIdentity::parse(""), Err(InvalidId::Empty));
        assert_eq!(PskIdentity::parse("a\n"), Err(InvalidId::Character('\n')));
        let long = "x".repeat(PskIdentity::BYTES_MAX + 1);
        assert_eq!(
            PskIdentity::parse(&long),
            Err(InvalidId::TooLong { max: 128 })
        );
    }

    fn moment() -> Moment {
        Moment::new(Timestamp::from_ms(1_000), 7)
    }

    fn acme() -> CustomerId {
        CustomerId::parse("acme").unwrap()
    }

    fn device_id(text: &str) -> Option<DeviceId> {
        Some(DeviceId::parse(text).unwrap())
    }

    fn iccid(text: &str) -> Option<Iccid> {
        Some(Iccid::parse(text).unwrap())
    }

    fn draft(new: NewDevice) -> Profile {
        draft_device(&mut moment(), &acme(), new).unwrap()
    }

    fn sealed() -> Sealed {
        Sealed::from_bytes(Box::from(*b"sealed"))
    }
}
