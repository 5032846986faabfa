//! Whose datagram is it?
//!
//! Sorting looks at one message alone; which device has an endpoint name, is at a location or
//! behind a peer the arbiter asks of the store and of its own table.

pub mod address_queues;
pub mod datagram_form;
pub mod peer_table;
mod route_cache;
pub mod router;
pub mod shard_map;

use std::net::IpAddr;

use protocol::coap::code::Code;
use protocol::coap::message::malformed::MessageFault;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;

use crate::datagram::{Datagram, Inbound, UdpDatagram};
use crate::ids::{DeviceKey, Endpoint};
use crate::limits::OVERLOAD_MAX_AGE_S;
use crate::location::Location;
use crate::peer::{Peer, PeerIdentity, Transport};
use crate::route::{CoapResource, CoapRoute};

/// The critical options a device may use towards us.
const KNOWN_CRITICAL: [u16; 9] = [
    option::IF_MATCH,
    option::URI_HOST,
    option::IF_NONE_MATCH,
    option::URI_PORT,
    option::URI_PATH,
    option::URI_QUERY,
    option::ACCEPT,
    option::BLOCK1,
    option::BLOCK2,
];

/// Where a datagram belongs.
#[derive(Debug)]
pub enum Classified {
    /// To the device that bears the endpoint name: a registration.
    ToEndpoint(Endpoint, Datagram),
    /// To the device whose registration has the location: an update or a deregistration.
    ToLocation(Location, Datagram),
    /// To the device registered behind the peer.
    ToPeer(Datagram),
    /// To the one device that has the identity of its sender.
    ToIdentity(Inbound),
    /// To nobody, and it is answered so.
    Answered {
        /// The answer.
        datagram: Vec<u8>,
        /// What kind of datagram it was, for the count.
        reason: DropReason,
    },
    /// To nobody, in silence.
    Ignored(DropReason),
}

impl Classified {
    /// What becomes of it while nothing more can be kept: whoever asks for something that has to be
    /// written is asked to come later. Answers and notifications go on to their device.
    pub fn defer(self) -> Self {
        match self {
            Self::ToEndpoint(_, datagram)
            | Self::ToLocation(_, datagram)
            | Self::ToIdentity(Inbound::Message(datagram) | Inbound::Ambiguous(datagram)) => {
                overloaded(&datagram)
            }
            Self::ToIdentity(Inbound::Udp(_) | Inbound::UdpBurst(..)) => {
                Self::Ignored(DropReason::Overloaded)
            }
            Self::ToPeer(datagram) if datagram.message.code.is_request() => overloaded(&datagram),
            Self::ToPeer(_) | Self::Answered { .. } | Self::Ignored(_) => self,
        }
    }
}

/// What became of a datagram that reached no device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DropReason {
    /// It is no CoAP message.
    Malformed(MessageFault),
    /// It has a critical option nobody here knows.
    UnknownOption,
    /// It registers a name nobody bears, or none.
    UnknownEndpoint,
    /// It names a registration that does not exist.
    UnknownLocation,
    /// It comes from a peer that is no device.
    UnknownPeer,
    /// It is data, and its address is not exactly one device's.
    UnknownAddress,
    /// It is for another server: nobody here passes it on.
    Proxied,
    /// It comes from where nobody can be answered: a group of hosts, or no host or port at all.
    Unanswerable,
    /// It comes while the service has too much to do.
    Overloaded,
    /// Its device is at home at another arbiter, which has too much to do.
    ArbiterBusy,
    /// Its device has as much to do as may wait for it, or is left alone.
    MailboxFull,
}

/// Sorts a datagram.
pub fn classify(number: u64, peer: Peer, bytes: &[u8]) -> Classified {
    if !is_of_one_host(peer.ip()) {
        return Classified::Ignored(DropReason::Unanswerable);
    }
    match peer.transport {
        Transport::Udp => {
            let bytes = bytes.to_vec();
            Classified::ToIdentity(Inbound::Udp(UdpDatagram {
                number,
                peer,
                bytes,
            }))
        }
        // A sender without port wants no answer (RFC 768), and CoAP is answered.
        Transport::Coap if peer.address.port() == 0 => {
            Classified::Ignored(DropReason::Unanswerable)
        }
        Transport::Coap => sort_coap(number, peer, bytes),
    }
}

fn sort_coap(number: u64, peer: Peer, bytes: &[u8]) -> Classified {
    let message = match Message::decode(bytes) {
        Ok(message) => message,
        Err(malformed) => {
            let fate = DropReason::Malformed(malformed.reason);
            return answered(malformed.reset.map(Message::reset), fate);
        }
    };
    // RFC 7252 section 5.10.2: who is no proxy says so.
    if message.code.is_request() && is_proxied(&message) {
        let answer = respond(&message, Code::PROXYING_NOT_SUPPORTED);
        return answered(answer, DropReason::Proxied);
    }
    if message.code.is_request() && message.unknown_critical_option(&KNOWN_CRITICAL).is_some() {
        let answer = respond(&message, Code::BAD_OPTION);
        return answered(answer, DropReason::UnknownOption);
    }
    let datagram = Datagram {
        number,
        peer,
        message,
    };
    match peer.identity() {
        PeerIdentity::Address(_) => classify_message(datagram),
        // It is of whoever holds the keys, whatever name or location it says.
        PeerIdentity::Association(_) => Classified::ToPeer(datagram),
    }
}

/// What to say to a registration whose name nobody bears: that it is forbidden, because a name
/// the service does not know belongs to no customer.
pub fn unknown_endpoint(datagram: &Datagram) -> Classified {
    answered(
        respond(&datagram.message, Code::FORBIDDEN),
        DropReason::UnknownEndpoint,
    )
}

/// What to say about a location that names no registration: the device registers anew.
pub fn unknown_location(datagram: &Datagram) -> Classified {
    answered(
        respond(&datagram.message, Code::NOT_FOUND),
        DropReason::UnknownLocation,
    )
}

/// Whether every device that is to be brought back since the start is back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Restoration {
    /// Some may still be away.
    UnderWay,
    /// All are back.
    Complete,
}

/// Whose data is, by the identity of its sender.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DevicesAtAddress {
    /// No device has it.
    Nobody,
    /// One device has it.
    One(DeviceKey),
    /// Several devices have it, this one among them.
    Several(DeviceKey),
}

/// What to say to data from an address that no device has; bare datagrams are never answered.
pub fn unknown_address(arrival: &Inbound) -> Classified {
    let answer = match arrival {
        Inbound::Message(datagram) | Inbound::Ambiguous(datagram) => {
            respond(&datagram.message, Code::UNAUTHORIZED)
        }
        Inbound::Udp(_) | Inbound::UdpBurst(..) => None,
    };
    answered(answer, DropReason::UnknownAddress)
}

/// What becomes of data from an address that several devices have: a message is answered by one of
/// them, whose customer is told; bare bytes are dropped.
pub fn ambiguous(arrival: Inbound) -> Result<Inbound, DropReason> {
    match arrival {
        Inbound::Message(datagram) | Inbound::Ambiguous(datagram) => {
            Ok(Inbound::Ambiguous(datagram))
        }
        Inbound::Udp(_) | Inbound::UdpBurst(..) => Err(DropReason::UnknownAddress),
    }
}

/// What to do with what no registered device said, as far as is known.
pub fn unknown_peer(datagram: Datagram, of_devices: Restoration) -> Classified {
    let has_identity = match datagram.peer.identity() {
        PeerIdentity::Address(_) => is_data(&datagram.message),
        PeerIdentity::Association(_) => datagram.message.code.is_request(),
    };
    if has_identity {
        return Classified::ToIdentity(Inbound::Message(datagram));
    }
    let message = &datagram.message;
    let answer = match (message.kind, message.code) {
        (MessageKind::Acknowledgement | MessageKind::Reset, _) => None,
        (MessageKind::Confirmable, Code::EMPTY) => Some(Message::reset(message.message_id)),
        // A Reset would end an observation that is held. A confirmable notification is repeated.
        (_, code) if code.is_response() && of_devices == Restoration::UnderWay => None,
        // A notification nobody asked for: a Reset makes the device stop.
        (_, code) if code.is_response() => Some(Message::reset(message.message_id)),
        // The device would register anew. It sends once more, and may be back by then.
        (_, Code::POST)
            if CoapRoute::of(message) == CoapRoute::Send && of_devices == Restoration::UnderWay =>
        {
            None
        }
        (_, _) => respond(message, Code::NOT_FOUND),
    };
    answered(answer, DropReason::UnknownPeer)
}

/// What to say while the service has too much to do: come back later (RFC 7252 section 5.9.3.4).
pub fn overloaded(datagram: &Datagram) -> Classified {
    let message = &datagram.message;
    let answer = message
        .code
        .is_request()
        .then(|| respond(message, Code::SERVICE_UNAVAILABLE))
        .flatten()
        .map(|answer| answer.with_max_age(OVERLOAD_MAX_AGE_S));
    answered(answer, DropReason::Overloaded)
}

fn classify_message(datagram: Datagram) -> Classified {
    if !datagram.message.code.is_request() {
        return Classified::ToPeer(datagram);
    }
    match CoapRoute::of(&datagram.message) {
        CoapRoute::Register => match endpoint_of(&datagram.message) {
            Some(endpoint) => Classified::ToEndpoint(endpoint, datagram),
            None => {
                let answer = respond(&datagram.message, Code::BAD_REQUEST);
                answered(answer, DropReason::UnknownEndpoint)
            }
        },
        CoapRoute::Update(location)
        | CoapRoute::Deregister(location)
        | CoapRoute::NotAllowed(CoapResource::Registration(Some(location))) => {
            Classified::ToLocation(location, datagram)
        }
        CoapRoute::UnknownLocation | CoapRoute::NotAllowed(CoapResource::Registration(None)) => {
            unknown_location(&datagram)
        }

        CoapRoute::Send
        | CoapRoute::Data
        | CoapRoute::Bootstrap
        | CoapRoute::NotAllowed(_)
        | CoapRoute::Unknown => Classified::ToPeer(datagram),
    }
}

/// Whether it is data of a device that need not speak LwM2M.
fn is_data(message: &Message) -> bool {
    let of_data = [CoapRoute::Data, CoapRoute::NotAllowed(CoapResource::Data)];
    message.code.is_request() && of_data.contains(&CoapRoute::of(message))
}

fn is_proxied(message: &Message) -> bool {
    let mut options = message.options();
    options.any(|(number, _)| [option::PROXY_URI, option::PROXY_SCHEME].contains(&number))
}

/// Whether an address is of one host: not of a group, of all, or of none.
pub fn is_of_one_host(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !(ip.is_multicast() || ip.is_broadcast() || ip.is_unspecified()),
        IpAddr::V6(ip) => !(ip.is_multicast() || ip.is_unspecified()),
    }
}

fn endpoint_of(message: &Message) -> Option<Endpoint> {
    let name = message
        .uri_query()
        .find_map(|query| query.strip_prefix("ep="))?;
    Endpoint::parse(name).ok()
}

/// A response in the acknowledgement of a Confirmable request. A Non-confirmable one without a
/// device gets none: a message id of our own belongs to a device.
fn respond(request: &Message, code: Code) -> Option<Message> {
    match request.kind {
        MessageKind::Confirmable => Some(Message::response_to(request, code, MessageId(0))),
        MessageKind::NonConfirmable | MessageKind::Acknowledgement | MessageKind::Reset => None,
    }
}

fn answered(answer: Option<Message>, fate: DropReason) -> Classified {
    match answer {
        Some(answer) => Classified::Answered {
            datagram: answer.encode(),
            reason: fate,
        },
        None => Classified::Ignored(fate),
    }
}

#[cfg(test)]
mod tests;
