//! Which floods are measured? What is sent, and from where.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use clap::ValueEnum;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::sender::FloodDatagram;
use crate::device_group::{DeviceGroup, control};
use crate::talk;

/// The devices of the customer that floods.
pub(super) const DEVICES: u32 = 1_000;

/// Datagrams prepared of each kind, and the addresses of strangers, where there are many.
const PREPARED: u32 = 20_000;

/// The addresses of strangers; all of 127.0.0.0/8 is local.
const FIRST_STRANGER: u32 = u32::from_be_bytes([127, 32, 0, 0]);

/// A flood.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum FloodKind {
    /// Registrations under names that no device has, from one address.
    UnknownNames,
    /// The same, each from another address.
    UnknownNamesManyAddresses,
    /// Pings (an empty Confirmable message), each from another address.
    Pings,
    /// Registrations with a changed byte, each from another address.
    Mutated,
    /// Updates of registrations that do not exist, each from another address.
    UnknownLocations,
    /// Updates of one registered device.
    OneDevice,
    /// Updates of all devices of one customer.
    Customer,
    /// Sends of all devices of one customer.
    CustomerSends,
}

impl FloodKind {
    /// Every flood.
    pub(super) fn all() -> [Self; 8] {
        [
            Self::UnknownNames,
            Self::UnknownNamesManyAddresses,
            Self::Pings,
            Self::Mutated,
            Self::UnknownLocations,
            Self::OneDevice,
            Self::Customer,
            Self::CustomerSends,
        ]
    }

    /// The socket of the flood and its datagrams.
    pub(super) fn prepare(self, server: SocketAddr) -> (UdpSocket, Vec<FloodDatagram>) {
        match self {
            Self::UnknownNames => strangers(|number| (0, unknown_name(number))),
            Self::UnknownNamesManyAddresses => strangers(|number| (number, unknown_name(number))),
            Self::Pings => strangers(|number| (number, ping())),
            Self::Mutated => strangers(|number| (number, mutated(number))),
            Self::UnknownLocations => strangers(|number| (number, unknown_location(number))),
            Self::OneDevice => {
                let (socket, mut updates) = registered(server);
                updates.truncate(1);
                (socket, updates)
            }
            Self::Customer => registered(server),
            Self::CustomerSends => {
                let (socket, mut datagrams) = registered(server);
                for datagram in &mut datagrams {
                    datagram.bytes = send();
                }
                (socket, datagrams)
            }
        }
    }
}

impl fmt::Display for FloodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownNames => "unknown names, one address",
            Self::UnknownNamesManyAddresses => "unknown names, 20,000 addresses",
            Self::Pings => "pings, 20,000 addresses",
            Self::Mutated => "registrations with a changed byte, 20,000 addresses",
            Self::UnknownLocations => "unknown locations, 20,000 addresses",
            Self::OneDevice => "updates of one device",
            Self::Customer => "updates of 1,000 devices of one customer",
            Self::CustomerSends => "Sends of 1,000 devices of one customer",
        })
    }
}

/// The datagrams of strangers: the number of the address, and the bytes, of each.
fn strangers(datagram: impl Fn(u32) -> (u32, Vec<u8>)) -> (UdpSocket, Vec<FloodDatagram>) {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port is free");
    let datagrams = (0..PREPARED).map(|number| {
        let (address, bytes) = datagram(number);
        FloodDatagram {
            control: control(Ipv4Addr::from_bits(FIRST_STRANGER + address)),
            bytes,
        }
    });
    (socket, datagrams.collect())
}

/// The updates of the devices of the customer that floods, which are registered first.
fn registered(server: SocketAddr) -> (UdpSocket, Vec<FloodDatagram>) {
    let mut group = DeviceGroup::gather(DEVICES);
    group.register(server);
    let (socket, updates) = group.into_updates();
    let datagram = |(control, bytes)| FloodDatagram { control, bytes };
    (socket, updates.map(datagram).collect())
}

fn unknown_name(number: u32) -> Vec<u8> {
    request(number)
        .with_uri_path(["rd"])
        .with_uri_query(["lwm2m=1.1", &format!("ep=stranger-{number:07}")])
        .with_uri_query(["lt=86400", "b=U"])
        .with_content_format(ContentFormat::LINK_FORMAT)
        .with_payload(talk::OBJECTS)
        .encode()
}

fn unknown_location(number: u32) -> Vec<u8> {
    let location = ["rd", &format!("{number:016x}")];
    talk::update(location, MessageId(0)).encode()
}

fn ping() -> Vec<u8> {
    Message::ping(MessageId(0)).encode()
}

fn mutated(number: u32) -> Vec<u8> {
    let mut bytes = unknown_name(number);
    let place = number as usize % bytes.len();
    bytes[place] ^= 1 << (number % 8);
    bytes
}

fn send() -> Vec<u8> {
    request(1)
        .with_uri_path(["dp"])
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(r#"[{"n":"/3303/0/5700","v":21.5}]"#)
        .encode()
}

fn request(number: u32) -> Message {
    let token = Token::from_u64(number.into());
    Message::request(MessageKind::Confirmable, Code::POST, MessageId(0), token)
}
