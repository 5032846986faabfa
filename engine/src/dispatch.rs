//! Which device is a datagram for?
//!
//! The classification looks at one message alone. The arbiter then finds the device of an endpoint
//! name, location or peer in the store and in its own table.

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

use crate::datagram::{Datagram, Inbound, Restoration, UdpDatagram};
use crate::diagnostic::{self, Recipient};
use crate::firmware::download::ImageRequest;
use crate::firmware::image_key::ImageKey;
use crate::ids::{CampaignId, DeviceKey, Endpoint};
use crate::limits::OVERLOAD_MAX_AGE_S;
use crate::location::Location;
use crate::peer::{Peer, Transport};
use crate::route::{CoapResource, CoapRoute};

/// The critical options that are supported in messages of devices.
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

/// Where a datagram goes.
#[derive(Debug)]
pub enum Classified {
    /// To the device with the endpoint name: a registration or a bootstrap request.
    ToEndpoint(Endpoint, Datagram),
    /// To the device whose registration has the location: an update or a deregistration.
    ToLocation(Location, Datagram),
    /// To the device registered at the peer.
    ToPeer(Datagram),
    /// To the device with the address of the sender.
    ToAddress(Inbound),
    /// To the image that a device downloads.
    ToImage(Box<ImageRequest>),
    /// To the device that the sender has proved to be, or claims to be in a handshake.
    ToDevice(DeviceKey, Inbound),
    /// To no device; it is answered here.
    Answered {
        /// The answer.
        datagram: Vec<u8>,
        /// Why it goes to no device, for metrics.
        reason: DropReason,
    },
    /// To no device; it is dropped without an answer.
    Ignored(DropReason),
}

impl Classified {
    /// The code of the answer, if there is one: the second byte of a message (RFC 7252 section 3).
    pub fn answer(&self) -> Option<Code> {
        match self {
            Self::Answered { datagram, .. } => datagram.get(1).map(|code| Code::from_byte(*code)),
            Self::ToEndpoint(..)
            | Self::ToLocation(..)
            | Self::ToPeer(_)
            | Self::ToAddress(_)
            | Self::ToImage(_)
            | Self::ToDevice(..)
            | Self::Ignored(_) => None,
        }
    }

    /// The classification while the store is full: requests that need a write are answered 5.03.
    /// Answers and notifications still go to their device.
    pub fn defer(self) -> Self {
        match self {
            Self::ToEndpoint(_, datagram)
            | Self::ToLocation(_, datagram)
            | Self::ToAddress(
                Inbound::Message(datagram)
                | Inbound::Ambiguous(datagram)
                | Inbound::BootstrapOnly(datagram),
            ) => overloaded(&datagram),
            Self::ToAddress(
                Inbound::Udp(_) | Inbound::UdpBurst(..) | Inbound::RefusedHandshake(_),
            ) => Self::Ignored(DropReason::Overloaded),
            Self::ToPeer(datagram) | Self::ToDevice(_, Inbound::Message(datagram))
                if datagram.message.code.is_request() =>
            {
                overloaded(&datagram)
            }
            // A download needs no write.
            Self::ToPeer(_)
            | Self::ToImage(_)
            | Self::ToDevice(..)
            | Self::Answered { .. }
            | Self::Ignored(_) => self,
        }
    }
}

/// Why a datagram reached no device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DropReason {
    /// It is not a CoAP message.
    Malformed(MessageFault),
    /// It has an unknown critical option.
    UnknownOption,
    /// It registers without an endpoint name, or with one that no device has.
    UnknownEndpoint,
    /// It names a registration or an image that does not exist.
    UnknownLocation,
    /// It is from a peer without a device.
    UnknownPeer,
    /// It is from a peer without a device, and some devices are not restored yet.
    NotRestored,
    /// It is data from an address that no device or several devices have.
    UnknownAddress,
    /// It is for another server; the service is not a proxy.
    Proxied,
    /// Its source cannot be answered: a multicast, broadcast or unspecified address, or no port.
    Unanswerable,
    /// The service is overloaded.
    Overloaded,
    /// Its device belongs to another arbiter, which is overloaded.
    ArbiterBusy,
    /// The mailbox of its device is full, or the device is parked.
    MailboxFull,
    /// Its sender sends more than it may.
    OverRate(RateScope),
}

/// Which rate a datagram exceeds.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RateScope {
    /// That of strangers at its address.
    Stranger,
    /// That of all strangers.
    Strangers,
    /// That of its device.
    Device,
    /// That of its customer.
    Customer,
}

impl DropReason {
    /// Whether it says that the sender is no known device.
    pub fn is_of_stranger(self) -> bool {
        match self {
            Self::Malformed(_)
            | Self::UnknownOption
            | Self::UnknownEndpoint
            | Self::UnknownLocation
            | Self::UnknownPeer
            | Self::UnknownAddress
            | Self::Proxied
            | Self::Unanswerable => true,
            Self::NotRestored
            | Self::Overloaded
            | Self::ArbiterBusy
            | Self::MailboxFull
            | Self::OverRate(_) => false,
        }
    }
}

/// Classifies a datagram.
pub fn classify(number: u64, peer: Peer, bytes: &[u8]) -> Classified {
    if !is_of_one_host(peer.ip()) {
        return Classified::Ignored(DropReason::Unanswerable);
    }
    match peer.transport {
        Transport::Udp => {
            let bytes = bytes.to_vec();
            Classified::ToAddress(Inbound::Udp(UdpDatagram {
                number,
                peer,
                bytes,
            }))
        }
        // A sender without a port expects no answer (RFC 768), but CoAP needs one.
        Transport::Coap | Transport::Coaps if peer.address.port() == 0 => {
            Classified::Ignored(DropReason::Unanswerable)
        }
        Transport::Coap | Transport::Coaps => {
            read_message((number, peer), bytes).map_or_else(|refused| *refused, classify_message)
        }
    }
}

/// Classifies a message over the security association with a device: it goes to the device that
/// proved its keys, whatever name or location it has, unless it asks for an image.
pub fn classify_secured(origin: (u64, Peer), device: DeviceKey, bytes: &[u8]) -> Classified {
    match read_message(origin, bytes) {
        Ok(datagram) => {
            let is_request = datagram.message.code.is_request();
            let route = is_request.then(|| CoapRoute::of(&datagram.message));
            if let Some(CoapRoute::Download(campaign, key)) = route {
                return to_image((campaign, key), Some(device), datagram);
            }
            Classified::ToDevice(device, Inbound::Message(datagram))
        }
        Err(refused) => *refused,
    }
}

/// Whether what a device sends is a request for an image.
pub fn is_download(bytes: &[u8]) -> bool {
    Message::decode(bytes).is_ok_and(|message| requests_image(&message))
}

fn requests_image(message: &Message) -> bool {
    message.code.is_request() && matches!(CoapRoute::of(message), CoapRoute::Download(..))
}

fn to_image(
    (campaign, key): (CampaignId, ImageKey),
    device: Option<DeviceKey>,
    datagram: Datagram,
) -> Classified {
    Classified::ToImage(Box::new(ImageRequest {
        campaign,
        key,
        device,
        datagram,
    }))
}

/// The answer to a request for an image that is not offered to its sender.
pub fn unknown_image(request: &ImageRequest) -> Classified {
    let message = &request.datagram.message;
    let answer = refuse(message, Code::NOT_FOUND, diagnostic::NO_RESOURCE);
    answered(answer, DropReason::UnknownLocation)
}

/// Classifies a message over a session that was made with a key for bootstrap alone: what else it
/// requests is refused by its device.
pub fn classify_for_bootstrap(origin: (u64, Peer), device: DeviceKey, bytes: &[u8]) -> Classified {
    let datagram = match read_message(origin, bytes) {
        Ok(datagram) => datagram,
        Err(refused) => return *refused,
    };
    let message = &datagram.message;
    let bootstraps = [CoapRoute::Bootstrap, CoapRoute::BootstrapPack];
    let is_other = message.code.is_request() && !bootstraps.contains(&CoapRoute::of(message));
    let arrival = match is_other {
        true => Inbound::BootstrapOnly(datagram),
        false => Inbound::Message(datagram),
    };
    Classified::ToDevice(device, arrival)
}

/// Reads a message that can be handled; any other is answered here.
fn read_message((number, peer): (u64, Peer), bytes: &[u8]) -> Result<Datagram, Box<Classified>> {
    let message = match Message::decode(bytes) {
        Ok(message) => message,
        Err(malformed) => {
            let reason = DropReason::Malformed(malformed.reason);
            let refused = answered(malformed.reset.map(Message::reset), reason);
            return Err(Box::new(refused));
        }
    };
    // RFC 7252 section 5.10.2: a server that is not a proxy answers 5.05.
    if message.code.is_request() && is_proxied(&message) {
        let answer = refuse(&message, Code::PROXYING_NOT_SUPPORTED, diagnostic::NO_PROXY);
        return Err(Box::new(answered(answer, DropReason::Proxied)));
    }
    if message.code.is_request()
        && let Some(number) = message.unknown_critical_option(&KNOWN_CRITICAL)
    {
        let text = format!("unknown option {number}");
        let answer = refuse(&message, Code::BAD_OPTION, &text);
        return Err(Box::new(answered(answer, DropReason::UnknownOption)));
    }
    Ok(Datagram::new(number, peer, message))
}

/// Classifies a request that names no device, or one that does not exist. The device with the
/// address of its sender refuses it, and logs that for its customer.
pub fn unknown_name(datagram: Datagram) -> Classified {
    Classified::ToAddress(Inbound::Message(datagram))
}

/// The devices with the address of a sender.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DevicesAtAddress {
    /// No device has it.
    Nobody,
    /// One device has it.
    One(DeviceKey),
    /// Several devices have it, this one among them.
    Several(DeviceKey),
}

/// The answer to a request from an address that no device has; bare datagrams are never answered.
pub fn unknown_address(arrival: &Inbound) -> Classified {
    let datagram = match arrival {
        Inbound::Message(datagram)
        | Inbound::Ambiguous(datagram)
        | Inbound::BootstrapOnly(datagram) => datagram,
        Inbound::Udp(_) | Inbound::UdpBurst(..) | Inbound::RefusedHandshake(_) => {
            return Classified::Ignored(DropReason::UnknownAddress);
        }
    };
    let message = &datagram.message;
    let route = CoapRoute::of(message);
    // A 4.04 would make a device register again that is known by its name alone and not restored
    // yet. It retransmits, and may be restored by that time.
    if route == CoapRoute::Send && datagram.restoration == Restoration::UnderWay {
        return Classified::Ignored(DropReason::NotRestored);
    }
    let (code, text) = refusal_of(message);
    let reason = match route {
        CoapRoute::Register | CoapRoute::Bootstrap | CoapRoute::BootstrapPack => {
            DropReason::UnknownEndpoint
        }
        CoapRoute::Update(_)
        | CoapRoute::Deregister(_)
        | CoapRoute::UnknownLocation
        | CoapRoute::NotAllowed(CoapResource::Registration(_)) => DropReason::UnknownLocation,
        CoapRoute::Data | CoapRoute::NotAllowed(CoapResource::Data) => DropReason::UnknownAddress,
        CoapRoute::Send
        | CoapRoute::Download(..)
        | CoapRoute::NotAllowed(_)
        | CoapRoute::Unknown => DropReason::UnknownPeer,
    };
    answered(refuse(message, code, text), reason)
}

/// The error for a request that belongs to no device.
pub(crate) fn refusal_of(request: &Message) -> (Code, &'static str) {
    match CoapRoute::of(request) {
        CoapRoute::Register | CoapRoute::Bootstrap | CoapRoute::BootstrapPack
            if endpoint_of(request).is_none() =>
        {
            (Code::BAD_REQUEST, diagnostic::NO_NAME)
        }
        // The name belongs to no customer.
        CoapRoute::Register | CoapRoute::Bootstrap | CoapRoute::BootstrapPack => {
            (Code::FORBIDDEN, diagnostic::NAME_NOT_ACCEPTED)
        }
        // So that the device registers again.
        CoapRoute::Update(_)
        | CoapRoute::Deregister(_)
        | CoapRoute::UnknownLocation
        | CoapRoute::NotAllowed(CoapResource::Registration(_)) => {
            (Code::NOT_FOUND, diagnostic::REGISTER_AGAIN)
        }
        CoapRoute::Send => (Code::NOT_FOUND, diagnostic::NOT_REGISTERED_HERE),
        CoapRoute::Data | CoapRoute::NotAllowed(CoapResource::Data) => {
            (Code::UNAUTHORIZED, diagnostic::UNKNOWN_ADDRESS)
        }
        CoapRoute::Download(..) | CoapRoute::NotAllowed(_) | CoapRoute::Unknown => {
            (Code::NOT_FOUND, diagnostic::NO_RESOURCE)
        }
    }
}

/// Handles data from an address that several devices have: a CoAP message goes to one of them,
/// which refuses it and logs that for its customer; a bare datagram is dropped.
pub fn ambiguous(arrival: Inbound) -> Result<Inbound, DropReason> {
    match arrival {
        Inbound::Message(datagram)
        | Inbound::Ambiguous(datagram)
        | Inbound::BootstrapOnly(datagram) => Ok(Inbound::Ambiguous(datagram)),
        Inbound::Udp(_) | Inbound::UdpBurst(..) | Inbound::RefusedHandshake(_) => {
            Err(DropReason::UnknownAddress)
        }
    }
}

/// Classifies a message from a peer at which no device is known to be registered.
pub fn unknown_peer(datagram: Datagram) -> Classified {
    if datagram.message.code.is_request() {
        return unknown_name(datagram);
    }
    let message = &datagram.message;
    let reason = match datagram.restoration {
        Restoration::Complete => DropReason::UnknownPeer,
        Restoration::UnderWay => DropReason::NotRestored,
    };
    let answer = match (message.kind, message.code) {
        (MessageKind::Acknowledgement | MessageKind::Reset, _) => None,
        (MessageKind::Confirmable, Code::EMPTY) => Some(Message::reset(message.message_id)),
        // A Reset would end an observation of a device that is not restored yet. A confirmable
        // notification is retransmitted.
        (_, code) if code.is_response() && reason == DropReason::NotRestored => None,
        // A notification without an observation: a Reset ends it.
        (_, code) if code.is_response() => Some(Message::reset(message.message_id)),
        // A code that is neither of a request nor of a response is not understood.
        (MessageKind::Confirmable, _) => Some(Message::reset(message.message_id)),
        (MessageKind::NonConfirmable, _) => None,
    };
    answered(answer, reason)
}

/// The answer while the service is overloaded: 5.03 with Max-Age (RFC 7252 section 5.9.3.4).
pub fn overloaded(datagram: &Datagram) -> Classified {
    let message = &datagram.message;
    let answer = message
        .code
        .is_request()
        .then(|| refuse(message, Code::SERVICE_UNAVAILABLE, diagnostic::OVERLOADED))
        .flatten()
        .map(|answer| answer.with_max_age(OVERLOAD_MAX_AGE_S));
    answered(answer, DropReason::Overloaded)
}

fn classify_message(datagram: Datagram) -> Classified {
    if !datagram.message.code.is_request() {
        return Classified::ToPeer(datagram);
    }
    match CoapRoute::of(&datagram.message) {
        CoapRoute::Register | CoapRoute::Bootstrap | CoapRoute::BootstrapPack => {
            match endpoint_of(&datagram.message) {
                Some(endpoint) => Classified::ToEndpoint(endpoint, datagram),
                None => unknown_name(datagram),
            }
        }
        CoapRoute::Update(location)
        | CoapRoute::Deregister(location)
        | CoapRoute::NotAllowed(CoapResource::Registration(Some(location))) => {
            Classified::ToLocation(location, datagram)
        }
        CoapRoute::UnknownLocation | CoapRoute::NotAllowed(CoapResource::Registration(None)) => {
            unknown_name(datagram)
        }
        CoapRoute::Download(campaign, key) => to_image((campaign, key), None, datagram),
        CoapRoute::Send | CoapRoute::Data | CoapRoute::NotAllowed(_) | CoapRoute::Unknown => {
            Classified::ToPeer(datagram)
        }
    }
}

fn is_proxied(message: &Message) -> bool {
    let mut options = message.options();
    options.any(|(number, _)| [option::PROXY_URI, option::PROXY_SCHEME].contains(&number))
}

/// Whether an address is that of one host: not multicast, broadcast or unspecified.
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

/// An error response with a text, piggybacked on the acknowledgement of a Confirmable request. A
/// Non-confirmable request without a device gets none: it would need a message id, and those belong
/// to a device.
fn refuse(request: &Message, code: Code, text: &str) -> Option<Message> {
    match request.kind {
        MessageKind::Confirmable => {
            let response = Message::response_to(request, code, MessageId(0));
            let to = (request, Recipient::Stranger);
            Some(diagnostic::with_text(response, text, to))
        }
        MessageKind::NonConfirmable | MessageKind::Acknowledgement | MessageKind::Reset => None,
    }
}

fn answered(answer: Option<Message>, reason: DropReason) -> Classified {
    match answer {
        Some(answer) => Classified::Answered {
            datagram: answer.encode(),
            reason,
        },
        None => Classified::Ignored(reason),
    }
}

#[cfg(test)]
mod tests;
