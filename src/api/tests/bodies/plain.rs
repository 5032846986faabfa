//! Does every response body for devices without LwM2M match its golden file?

use std::num::NonZeroU16;

use engine::action::{
    Action, CoapRequest, Content, ContentEncoding, Method, Outcome, PayloadType, Protocol, Request,
    Status, UdpRequest,
};
use engine::device::record::Connectivity;
use engine::device::snapshot::{PendingAction, Presence, Snapshot};
use engine::event::{Data, Event, EventContent};
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::topic::Topic;

use super::{NOON, event, meter, scheduled};
use crate::api::action::ActionBody;
use crate::api::device::InspectorBody;
use crate::api::tests::golden;

#[test]
fn an_action_request_over_udp() {
    golden::check("action_over_udp", &ActionBody::of(&over_udp()));
}

#[test]
fn an_answered_action_request_over_coap() {
    let outcome = Outcome {
        code: Some("204".into()),
        payload: Some("done".into()),
        payload_type: Some(PayloadType::Text),
        ..Outcome::default()
    };
    let request = CoapRequest {
        method: Method::Put,
        port: NonZeroU16::new(5_683).unwrap(),
        target: engine::PathAndQuery::parse("/led?color=r").unwrap(),
        content: Some(Content::parse(ContentEncoding::Base64, "AQID").unwrap()),
    };
    let answered = Action {
        request: Request::Coap(request),
        status: Status::Succeeded,
        attempts_made: 1,
        outcome: Some(outcome),
        ..scheduled()
    };
    golden::check("action_over_coap", &ActionBody::of(&answered));
}

#[test]
fn an_action_request_over_coap_without_a_payload() {
    let request = CoapRequest {
        method: Method::Get,
        port: NonZeroU16::new(5_683).unwrap(),
        target: engine::PathAndQuery::parse("/").unwrap(),
        content: None,
    };
    let waiting = Action {
        request: Request::Coap(request),
        ..scheduled()
    };
    golden::check("action_over_coap_bare", &ActionBody::of(&waiting));
}

#[test]
fn a_device_that_speaks_plain_coap() {
    let snapshot = Snapshot {
        first_contact_at: Some(NOON),
        last_seen_at: Some(NOON.plus_s(60)),
        peer: Some(Peer::plain("10.0.0.7:49152".parse().unwrap())),
        protocols_seen: Some(Protocol::Coap),
        presence: Presence::Unregistered,
        connectivity: Connectivity::Offline,
        registration: None,
        pending: vec![PendingAction {
            action: over_udp(),
            waits_for: None,
        }],
        exchange: None,
        observations: vec![],
        bootstrap: None,
    };
    let recent = [data_event(Protocol::Coap, Some("meters/temperature"))];
    let body = InspectorBody::of(&meter(), (&snapshot, None), &[], &recent, (&[], None));
    golden::check("device_inspector_plain", &body);
}

/// Data of the device.
pub(super) fn data_event(source: Protocol, topic: Option<&str>) -> Event {
    event(EventContent::Data(Box::new(Data {
        source,
        topic: topic.map(|topic| Topic::parse(topic).unwrap()),
        bytes: br#"{"t":21.5}"#.as_slice().into(),
    })))
}

fn over_udp() -> Action {
    let request = UdpRequest {
        content: Content::parse(ContentEncoding::String, "on").unwrap(),
        port: NonZeroU16::new(4_445).unwrap(),
    };
    Action {
        request: Request::Udp(request),
        attempts_permitted: 1,
        expires_in_s: Some(600),
        not_before: Some(Timestamp::from_ms(1_700_000_000_000)),
        ..scheduled()
    }
}
