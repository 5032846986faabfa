//! What is stored of the fleet's devices? Registrations of a service that was stopped.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use engine::action::Protocol;
use engine::device::record::{DeviceRecord, ProtocolsSeen, Registration, RestoredDevice};
use engine::limits::Limits;
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::rules::{EndpointTrust, Rules, TransmissionRules};
use protocol::lwm2m::links::ObjectLinks;

use crate::{fleet, talk};

/// The rules for every device: the defaults.
pub(crate) fn rules() -> Rules {
    let patience = TransmissionRules {
        ack_timeout_ms: 2_000,
        max_retransmit: 4,
        response_timeout_ms: 93_000,
    };
    Rules::new(Limits::default(), patience, EndpointTrust::AddressRequired)
}

/// The stored state of a device with half a day of its lifetime left; its list of objects is a copy
/// of its own, as a store reads it.
pub(crate) fn restored(number: u32, now: Timestamp) -> RestoredDevice {
    let address = SocketAddr::new(IpAddr::V4(fleet::address(number)), 5_683);
    let registration = Registration {
        salt: number,
        lifetime_asked_s: Some(86_400),
        expires_at: now.plus_s(40_000),
        registered_at: now,
        version: Registration::parse_version("1.1").expect("1.1 is a version"),
        binding: Registration::parse_binding("U").expect("U is a binding"),
        sms: None,
        links: links(),
    };
    RestoredDevice {
        profile: fleet::profile(number),
        record: DeviceRecord {
            first_contact_at: Some(now),
            last_seen_at: Some(now),
            protocols_seen: ProtocolsSeen::restored([Protocol::Lwm2m], Some(Protocol::Lwm2m)),
            peer: Some(Peer::plain(address)),
            registration: Some(registration),
            ..DeviceRecord::default()
        },
        pending: Vec::new(),
        recent_events: Box::default(),
    }
}

/// The objects of a device, in a copy of its own.
pub(crate) fn links() -> Arc<ObjectLinks> {
    Registration::parse_links(talk::OBJECTS).expect("what devices list is read")
}
