//! Which devices do the benches use? Those of one customer, by number, each with an address of its
//! own.

use std::net::{IpAddr, Ipv4Addr};

use engine::credentials::DeviceCredentials;
use engine::ids::{CustomerId, DeviceId, Endpoint, Iccid};
use engine::moment::Timestamp;
use engine::profile::{Profile, SecurityRequirement};
use engine::tags::Tags;

/// The first address of the fleet: all of 127.0.0.0/8 is local, so a device can send from any.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([127, 64, 0, 0]);

/// The customer of the fleet.
pub(crate) fn customer() -> CustomerId {
    CustomerId::parse("bench").expect("letters are an id")
}

/// The source address of a device.
pub(crate) fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_ADDRESS + number)
}

/// The profile of a device.
pub(crate) fn profile(number: u32) -> Profile {
    let name = format!("urn:dev:{number:09}");
    Profile {
        customer: customer(),
        device: DeviceId::parse(&name).expect("letters, digits and colons are an id"),
        number: number.into(),
        iccid: Iccid::parse(&name).expect("letters, digits and colons are an id"),
        imsi: None,
        msisdn: None,
        ip: Some(IpAddr::V4(address(number))),
        endpoint: Endpoint::parse(&name).expect("letters, digits and colons are an id"),
        name: None,
        credentials: DeviceCredentials::default(),
        security: SecurityRequirement::Any,
        created_at: Timestamp::from_ms(1_795_219_200_000),
        tags: Tags::default(),
        wake_up: None,
        offline_after_s: None,
    }
}
