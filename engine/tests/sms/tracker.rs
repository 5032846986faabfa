//! The device that the SMS of these tests are about.

use engine::credentials::DeviceCredentials;
use engine::ids::{CustomerId, DeviceId, Endpoint, Iccid, Msisdn};
use engine::moment::Timestamp;
use engine::profile::{Profile, SecurityRequirement};
use engine::tags::Tags;

pub(crate) fn tracker(number: Option<&str>) -> Profile {
    Profile {
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceId::parse("tracker").unwrap(),
        number: 7,
        iccid: Iccid::parse("8988280666000000001").unwrap(),
        imsi: None,
        msisdn: number.map(|number| Msisdn::parse(number).unwrap()),
        ip: None,
        endpoint: Endpoint::parse("tracker").unwrap(),
        name: None,
        credentials: DeviceCredentials::default(),
        security: SecurityRequirement::Any,
        created_at: Timestamp::default(),
        tags: Tags::default(),
        wake_up: None,
        offline_after_s: None,
    }
}
