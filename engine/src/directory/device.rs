//! Decisions about devices and their identities.

use std::net::IpAddr;
use std::num::NonZeroU32;

use crate::change::{Batch, Change, Counter, CounterDelta, Expect, UniqueName};
use crate::credentials::DeviceCredentials;
use crate::directory::{Decision, DirectoryRefusal, decided, draw_number, guarded};
use crate::ids::{CustomerId, DeviceId, Endpoint, Iccid, Imsi, Msisdn};
use crate::moment::Moment;
use crate::profile::{Profile, SecurityRequirement};
use crate::tags::Tags;
use crate::wake_up::WakeUpMessage;

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
    /// What its datagrams are accepted over.
    pub security: SecurityRequirement,
    /// How long it may be silent before it is offline, in seconds.
    pub offline_after_s: Option<NonZeroU32>,
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
        credentials: DeviceCredentials::default(),
        security: new.security,
        created_at: m.now(),
        tags: new.tags,
        wake_up: None,
        offline_after_s: new.offline_after_s,
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

/// Sets or removes the SMS that wakes a device.
pub fn put_wake_up(
    profile: Option<Profile>,
    wake_up: Option<WakeUpMessage>,
) -> Result<Decision<()>, DirectoryRefusal> {
    let was = profile.ok_or(DirectoryRefusal::DeviceUnknown)?;
    let expects = vec![Expect::Profile(Box::new(was.clone()))];
    let profile = Box::new(Profile {
        wake_up,
        ..was.clone()
    });
    let was = Some(Box::new(was));
    Ok(decided(expects, Change::PutDevice { was, profile }, ()))
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
        assert_eq!(by_id.psk_identity(), "meter-1");
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
        assert_eq!(profile.psk_identity(), "meter 1");
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
}
