//! Who is the device? The part of a profile that its machine needs, packed: a million devices have
//! one each.

use std::net::IpAddr;

use crate::ids::{CustomerId, DeviceId, Iccid, Imsi};
use crate::profile::Profile;

/// The names and the address of a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The names, concatenated. A name that the text already contains is not added again: by
    /// default a device has one name for everything.
    texts: Box<str>,
    customer: Span,
    device: Span,
    iccid: Span,
    /// Empty if unknown.
    imsi: Span,
    endpoint: Span,
    ip: Option<IpAddr>,
    number: u64,
}

impl Identity {
    /// Packs a profile.
    pub fn of(profile: &Profile) -> Self {
        let mut texts = String::new();
        let imsi = profile.imsi.as_ref().map_or("", Imsi::as_str);
        Self {
            endpoint: Span::pack(profile.endpoint.as_str(), &mut texts),
            device: Span::pack(profile.device.as_str(), &mut texts),
            iccid: Span::pack(profile.iccid.as_str(), &mut texts),
            imsi: Span::pack(imsi, &mut texts),
            customer: Span::pack(profile.customer.as_str(), &mut texts),
            ip: profile.ip,
            number: profile.number,
            texts: texts.into(),
        }
    }

    /// The owner of the device.
    pub fn customer(&self) -> CustomerId {
        CustomerId::parse(self.text(self.customer)).expect("a customer id was packed")
    }

    /// The id its customer gave it.
    pub fn device(&self) -> DeviceId {
        DeviceId::parse(self.text(self.device)).expect("a device id was packed")
    }

    /// The ICCID of its SIM.
    pub fn iccid(&self) -> Iccid {
        Iccid::parse(self.text(self.iccid)).expect("an ICCID was packed")
    }

    /// The subscriber identity of the SIM, if known.
    pub fn imsi(&self) -> Option<Imsi> {
        let imsi = Some(self.text(self.imsi)).filter(|text| !text.is_empty());
        imsi.map(|text| Imsi::parse(text).expect("an IMSI was packed"))
    }

    /// The endpoint client name it registers with.
    pub fn endpoint(&self) -> &str {
        self.text(self.endpoint)
    }

    /// The fixed address of the SIM, if it has one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    /// The number that distinguishes it from another device with its id.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn text(&self, span: Span) -> &str {
        let start = usize::from(u16::from_be_bytes(span.start));
        let end = start + usize::from(span.length);
        self.texts.get(start..end).expect("a span was packed")
    }
}

/// The position of a name in the text, in three bytes: an identity has five.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Span {
    start: [u8; 2],
    length: u8,
}

impl Span {
    fn pack(text: &str, texts: &mut String) -> Self {
        let start = texts.find(text).unwrap_or_else(|| {
            texts.push_str(text);
            texts.len() - text.len()
        });
        Self {
            start: u16::try_from(start)
                .expect("five names have less than 65,536 bytes")
                .to_be_bytes(),
            length: u8::try_from(text.len()).expect("a name has 255 bytes at most"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::credentials::DeviceCredentials;
    use crate::ids::{Endpoint, Msisdn};
    use crate::moment::Timestamp;
    use crate::profile::SecurityRequirement;
    use crate::tags::Tags;

    use super::*;

    #[test]
    fn a_packed_identity_is_unpacked_unchanged() {
        let profile = Profile {
            imsi: Some(Imsi::parse("262011234567890").unwrap()),
            ip: Some("10.0.0.1".parse().unwrap()),
            ..profile(
                "acme",
                "meter-1",
                "8949000000000000001",
                "urn:imei:356938035643809",
            )
        };
        check(&profile);
    }

    #[test]
    fn names_that_contain_each_other_are_kept_apart() {
        check(&profile("a", "a1", "1", "a12"));
        check(&profile("12", "1", "12", "1"));
    }

    #[test]
    fn the_longest_names_fit() {
        let (customer, name) = ("c".repeat(64), "d".repeat(128));
        check(&profile(
            &customer,
            &name,
            &"i".repeat(128),
            &"é".repeat(127),
        ));
    }

    #[test]
    fn one_name_for_everything_is_stored_once() {
        let name = "8949000000000000001";
        let packed = Identity::of(&profile("acme", name, name, name));
        assert_eq!(packed.texts.len(), name.len() + "acme".len());
    }

    fn check(profile: &Profile) {
        let packed = Identity::of(profile);
        assert_eq!(packed.customer(), profile.customer);
        assert_eq!(packed.device(), profile.device);
        assert_eq!(packed.iccid(), profile.iccid);
        assert_eq!(packed.imsi(), profile.imsi);
        assert_eq!(packed.endpoint(), profile.endpoint.as_str());
        assert_eq!(packed.ip(), profile.ip);
        assert_eq!(packed.number(), profile.number);
    }

    fn profile(customer: &str, device: &str, iccid: &str, endpoint: &str) -> Profile {
        Profile {
            customer: CustomerId::parse(customer).unwrap(),
            device: DeviceId::parse(device).unwrap(),
            number: 1,
            iccid: Iccid::parse(iccid).unwrap(),
            imsi: None,
            msisdn: Some(Msisdn::parse("491701234567").unwrap()),
            ip: None,
            endpoint: Endpoint::parse(endpoint).unwrap(),
            name: None,
            credentials: DeviceCredentials::default(),
            security: SecurityRequirement::Any,
            created_at: Timestamp::default(),
            tags: Tags::default(),
            wake_up: None,
            offline_after_s: None,
        }
    }
}
