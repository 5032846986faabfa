//! The vocabulary of devices that use plain CoAP or bare UDP, and of requests to them.

use std::num::NonZeroU16;

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::coap::uri::PathAndQuery;

use super::rendering::Lines;
use super::requests::action;
use super::{DeviceFixture, HOME, peer};
use crate::action::{
    CoapRequest, Content, ContentEncoding, Method, NewAction, Request, UdpRequest,
};
use crate::datagram::{Datagram, UdpDatagram};
use crate::device::Device;
use crate::effect::SendOutcome;
use crate::ids::ActionId;
use crate::peer::Peer;
use crate::step_event::UplinkKind;

/// The address that bare datagrams of the device come from and go to.
pub(in crate::device::tests) const BARE: &str = "10.0.0.1:4445";

impl DeviceFixture {
    /// Data of the device with a topic.
    pub(in crate::device::tests) fn data(&mut self, topic: &str, payload: &str) -> Message {
        self.request(Code::POST, &[])
            .with_uri_query([format!("t={topic}")])
            .with_payload(payload)
    }

    /// The device posts data with the topic `t` from its address.
    pub(in crate::device::tests) fn posts(&mut self, payload: &str) -> Lines {
        let message = self.data("t", payload);
        self.receives(HOME, &message)
    }

    /// The device sends a bare datagram.
    pub(in crate::device::tests) fn receives_bare(&mut self, bytes: &[u8]) -> Lines {
        self.receives_bare_from(BARE, bytes).1
    }

    pub(in crate::device::tests) fn receives_bare_from(
        &mut self,
        from: &str,
        bytes: &[u8],
    ) -> (UplinkKind, Lines) {
        let bare = UdpDatagram {
            number: 0,
            peer: Peer::bare(from.parse().unwrap()),
            bytes: bytes.to_vec(),
        };
        self.step(|device, m, out| device.handle_udp(m, &bare, out))
    }

    /// The device sends several bare datagrams in a row.
    pub(in crate::device::tests) fn receives_burst(&mut self, texts: &[&str]) -> Lines {
        let peer = Peer::bare(BARE.parse().unwrap());
        let bare = |text: &&str| UdpDatagram {
            number: 0,
            peer,
            bytes: text.as_bytes().to_vec(),
        };
        let burst: Vec<UdpDatagram> = texts.iter().map(bare).collect();
        self.step(|device, m, out| device.handle_udp_burst(m, &burst, out))
            .1
    }

    /// A message comes from an address that several devices share.
    pub(in crate::device::tests) fn receives_ambiguous(&mut self, message: &Message) -> Lines {
        let datagram = Datagram::new(0, peer(HOME), message.clone());
        self.step(|device, m, out| device.handle_ambiguous(m, &datagram, out))
            .1
    }

    /// The socket reports the outcome of the last bare datagram.
    pub(in crate::device::tests) fn send_outcome(&mut self, outcome: SendOutcome) -> Lines {
        let action = self.bare_action.expect("a bare datagram was sent");
        self.send_outcome_of(action, outcome)
    }

    /// The socket reports the outcome of the bare datagram of a request.
    pub(in crate::device::tests) fn send_outcome_of(
        &mut self,
        action: ActionId,
        outcome: SendOutcome,
    ) -> Lines {
        let report = |device: &mut Device, m: &mut _, out: &mut _| {
            device.handle_send_outcome(m, (action, outcome), out);
        };
        self.step(report).1
    }
}

/// A request for a bare datagram.
pub(in crate::device::tests) fn datagram(text: &str) -> NewAction {
    action(Request::Udp(UdpRequest {
        content: written(text),
        port: port(4445),
    }))
}

/// A CoAP request to the address at which the device serves, with a payload unless that is empty.
pub(in crate::device::tests) fn coap(method: Method, target: &str, payload: &str) -> NewAction {
    let content = (!payload.is_empty()).then(|| written(payload));
    action(Request::Coap(CoapRequest {
        method,
        port: port(5685),
        target: PathAndQuery::parse(target).unwrap(),
        content,
    }))
}

pub(in crate::device::tests) fn port(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

fn written(text: &str) -> Content {
    Content::parse(ContentEncoding::String, text).unwrap()
}

/// The first contact with the device is published, saved and logged.
pub(in crate::device::tests) fn first_contact(at_ms: i64, from: &str, over: &str) -> Lines {
    vec![
        "publish FirstContact".to_owned(),
        format!("save record: unregistered, seen at {at_ms} from {from}"),
        format!(
            "log Lifecycle[DeviceFirstTimeRegistered] Info: \
             The first message from the device was received over {over}."
        ),
    ]
}

/// Data over CoAP with the topic `t` is published.
pub(in crate::device::tests) fn data_published(payload: &str) -> Lines {
    super::published(&format!("Coap data \"t\" {payload:?}"))
}

/// A bare datagram of the device is published.
pub(in crate::device::tests) fn datagram_published(payload: &str) -> Lines {
    super::published(&format!("Udp data \"\" {payload:?}"))
}
