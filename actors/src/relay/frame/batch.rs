//! How are the items of a batch for an arbiter written into a frame?
//!
//! One after the other, each with a tag (1 byte) before its fields. A length and a count have 4
//! bytes. Numbers and addresses are written as in `relay/frame.rs`.
//!
//! The address that a peer sends to has a number in its process alone, so it is written with the
//! node and the stream whose socket has it.

use std::iter;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use engine::associations::export::SessionRecord;
use engine::associations::handshake::HandshakeFault;
use engine::datagram::{Datagram, Inbound, RefusedHandshake, Restoration, UdpDatagram};
use engine::dispatch::router::{DatagramRecipient, ForwardedDatagram, ReceivedBy, RouteHint};
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::{DeviceKey, NodeId};
use engine::location::Location;
use engine::peer::{AssociationId, Peer};

use crate::registry::forward_batch::ForwardBatch;
use crate::socket::RelayId;

use super::fields::{FieldReader, number_of, put_address, put_ip};
use super::{BatchContext, InvalidFrame};

// Items of a batch.
const DATAGRAM: u8 = 0;
const ROUTE_HINT: u8 = 1;
const RECORD: u8 = 2;
const SECURED: u8 = 3;
const CACHED_SESSION: u8 = 4;
const STRANGER: u8 = 5;

// Recipients of a datagram.
const TO_DEVICE: u8 = 0;
const TO_LOCATION: u8 = 1;
const TO_PEER: u8 = 2;

// Inputs for a device.
const MESSAGE: u8 = 0;
const AMBIGUOUS: u8 = 1;
const BOOTSTRAP_ONLY: u8 = 2;
const UDP: u8 = 3;
const UDP_BURST: u8 = 4;
const REFUSED_HANDSHAKE: u8 = 5;

const FAULTS: [HandshakeFault; 8] = [
    HandshakeFault::WrongKey,
    HandshakeFault::NoKey,
    HandshakeFault::Revoked,
    HandshakeFault::UntrustedCertificate,
    HandshakeFault::CertificateNotValidNow,
    HandshakeFault::UnusableCertificate,
    HandshakeFault::EndedByPeer,
    HandshakeFault::Protocol,
];

/// A field, if there is one.
type Field<T> = Result<T, InvalidFrame>;

/// Passes on the bytes of each item.
pub(super) fn write_items(
    batch: &ForwardBatch,
    place_of: &dyn Fn(Peer) -> (RelayId, IpAddr),
    mut pass_on: impl FnMut(&[u8]),
) {
    let ForwardBatch {
        datagrams,
        route_hints,
        records,
        secured,
        cached_sessions,
        strangers,
    } = batch;
    let mut item = ItemWriter {
        bytes: Vec::new(),
        place_of,
    };
    for forwarded in datagrams {
        item.begin(DATAGRAM);
        item.forwarded(forwarded);
        pass_on(&item.bytes);
    }
    for hint in route_hints {
        item.begin(ROUTE_HINT);
        item.arbiter(hint.to);
        item.peer(hint.peer);
        item.arbiter(hint.arbiter);
        pass_on(&item.bytes);
    }
    for (peer, record) in records {
        item.begin(RECORD);
        item.peer(*peer);
        item.with_length(record);
        pass_on(&item.bytes);
    }
    for (device, message) in secured {
        item.begin(SECURED);
        item.put(device.as_bytes());
        item.with_length(message);
        pass_on(&item.bytes);
    }
    for session in cached_sessions {
        item.begin(CACHED_SESSION);
        item.with_length(session);
        pass_on(&item.bytes);
    }
    for peer in strangers {
        item.begin(STRANGER);
        item.peer(*peer);
        pass_on(&item.bytes);
    }
}

/// Reads a batch and the arbiter that it is for.
pub(super) fn read(
    fields: FieldReader<'_>,
    context: &BatchContext<'_>,
) -> Field<(ArbiterId, ForwardBatch)> {
    let mut reader = BatchReader { fields, context };
    let to = reader.arbiter()?;
    let mut batch = ForwardBatch::default();
    while !reader.fields.is_at_end() {
        reader.item(&mut batch)?;
    }
    Ok((to, batch))
}

struct ItemWriter<'a> {
    bytes: Vec<u8>,
    place_of: &'a dyn Fn(Peer) -> (RelayId, IpAddr),
}

impl ItemWriter<'_> {
    fn begin(&mut self, tag: u8) {
        self.bytes.clear();
        self.bytes.push(tag);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A length or a count; an item with a greater one does not fit into a frame.
    fn count(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.put(&count.to_be_bytes());
    }

    fn with_length(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.put(bytes);
    }

    fn arbiter(&mut self, arbiter: ArbiterId) {
        self.put(&arbiter.number().to_be_bytes());
    }

    fn peer(&mut self, peer: Peer) {
        let (RelayId { node, stream }, at) = (self.place_of)(peer);
        let association = peer.association.map_or(0, |it| it.number().get());
        self.bytes.push(number_of(peer.transport));
        put_address(peer.address, &mut self.bytes);
        self.put(&association.to_be_bytes());
        self.put(node.as_bytes());
        self.put(&stream.to_be_bytes());
        put_ip(at, &mut self.bytes);
    }

    fn forwarded(&mut self, forwarded: &ForwardedDatagram) {
        let ReceivedBy {
            arbiter,
            needs_hint,
        } = forwarded.received_by;
        self.arbiter(arbiter);
        self.put(&[u8::from(needs_hint)]);
        match &forwarded.recipient {
            DatagramRecipient::Device(key, arrival) => {
                self.put(&[TO_DEVICE]);
                self.put(key.as_bytes());
                self.inbound(arrival);
            }
            DatagramRecipient::Location(location, datagram) => {
                self.put(&[TO_LOCATION]);
                self.put(&location.device);
                self.put(&location.salt.to_be_bytes());
                self.datagram(datagram);
            }
            DatagramRecipient::Peer {
                datagram,
                arbiters_left,
            } => {
                self.put(&[TO_PEER]);
                self.put(&arbiters_left.to_be_bytes());
                self.datagram(datagram);
            }
        }
    }

    fn inbound(&mut self, arrival: &Inbound) {
        match arrival {
            Inbound::Message(datagram) => {
                self.put(&[MESSAGE]);
                self.datagram(datagram);
            }
            Inbound::Ambiguous(datagram) => {
                self.put(&[AMBIGUOUS]);
                self.datagram(datagram);
            }
            Inbound::BootstrapOnly(datagram) => {
                self.put(&[BOOTSTRAP_ONLY]);
                self.datagram(datagram);
            }
            Inbound::Udp(bare) => {
                self.put(&[UDP]);
                self.bare(bare);
            }
            Inbound::UdpBurst(first, more) => {
                self.put(&[UDP_BURST]);
                self.count(more.len());
                iter::once(first)
                    .chain(more)
                    .for_each(|bare| self.bare(bare));
            }
            Inbound::RefusedHandshake(RefusedHandshake { number, peer, why }) => {
                self.put(&[REFUSED_HANDSHAKE]);
                self.origin(*number, *peer);
                self.put(&[number_of_fault(*why)]);
            }
        }
    }

    fn origin(&mut self, number: u64, peer: Peer) {
        self.put(&number.to_be_bytes());
        self.peer(peer);
    }

    /// A misused critical option is not in the encoded message. The option 0 is elective, so it
    /// stands for none.
    fn datagram(&mut self, datagram: &Datagram) {
        let Datagram {
            number,
            peer,
            message,
            restoration,
        } = datagram;
        self.origin(*number, *peer);
        self.put(&[u8::from(*restoration == Restoration::UnderWay)]);
        let misused = message.misused_option().unwrap_or(0);
        self.put(&misused.to_be_bytes());
        self.with_length(&message.encode());
    }

    fn bare(&mut self, bare: &UdpDatagram) {
        self.origin(bare.number, bare.peer);
        self.with_length(&bare.bytes);
    }
}

struct BatchReader<'a> {
    fields: FieldReader<'a>,
    context: &'a BatchContext<'a>,
}

impl BatchReader<'_> {
    fn item(&mut self, batch: &mut ForwardBatch) -> Field<()> {
        match self.fields.u8()? {
            DATAGRAM => batch.datagrams.push(self.forwarded()?),
            ROUTE_HINT => batch.route_hints.push(RouteHint {
                to: self.arbiter()?,
                peer: self.peer()?,
                arbiter: self.arbiter()?,
            }),
            RECORD => {
                let peer = self.peer()?;
                batch.records.push((peer, self.fields.bytes()?.to_vec()));
            }
            SECURED => {
                let device = self.device()?;
                batch.secured.push((device, self.fields.bytes()?.to_vec()));
            }
            CACHED_SESSION => {
                let session = SessionRecord::new(self.fields.bytes()?.to_vec());
                batch.cached_sessions.push(Arc::new(session));
            }
            STRANGER => batch.strangers.push(self.peer()?),
            _ => return Err(InvalidFrame::Damaged),
        }
        Ok(())
    }

    fn arbiter(&mut self) -> Field<ArbiterId> {
        let number = self.fields.u16()?;
        let arbiter = self.context.shard_map.numbered(number);
        arbiter.ok_or(InvalidFrame::UnknownArbiter(number))
    }

    fn device(&mut self) -> Field<DeviceKey> {
        self.fields.array().map(DeviceKey::from_bytes)
    }

    fn peer(&mut self) -> Field<Peer> {
        let transport = self.fields.transport()?;
        let peer = Peer::at(self.fields.address()?, transport);
        let association = NonZeroU32::new(self.fields.u32()?).map(AssociationId::from_number);
        let relay = RelayId {
            node: self.fields.array().map(NodeId::from_bytes)?,
            stream: self.fields.u16()?,
        };
        let at = self.fields.ip()?;
        Ok(Peer {
            association,
            local: (self.context.local_at)(relay, at),
            ..peer
        })
    }

    fn forwarded(&mut self) -> Field<ForwardedDatagram> {
        let received_by = ReceivedBy {
            arbiter: self.arbiter()?,
            needs_hint: self.fields.u8()? != 0,
        };
        let recipient = match self.fields.u8()? {
            TO_DEVICE => DatagramRecipient::Device(self.device()?, self.inbound()?),
            TO_LOCATION => DatagramRecipient::Location(
                Location {
                    device: self.fields.array()?,
                    salt: self.fields.u32()?,
                },
                self.datagram()?,
            ),
            TO_PEER => DatagramRecipient::Peer {
                arbiters_left: self.fields.u16()?,
                datagram: self.datagram()?,
            },
            _ => return Err(InvalidFrame::Damaged),
        };
        Ok(ForwardedDatagram {
            recipient,
            received_by,
        })
    }

    fn inbound(&mut self) -> Field<Inbound> {
        Ok(match self.fields.u8()? {
            MESSAGE => Inbound::Message(self.datagram()?),
            AMBIGUOUS => Inbound::Ambiguous(self.datagram()?),
            BOOTSTRAP_ONLY => Inbound::BootstrapOnly(self.datagram()?),
            UDP => Inbound::Udp(self.bare()?),
            UDP_BURST => {
                let (count, first) = (self.fields.u32()?, self.bare()?);
                let more: Field<Vec<_>> = (0..count).map(|_| self.bare()).collect();
                Inbound::UdpBurst(first, more?)
            }
            REFUSED_HANDSHAKE => {
                let (number, peer) = self.origin()?;
                let why = fault_of(self.fields.u8()?).ok_or(InvalidFrame::Damaged)?;
                Inbound::RefusedHandshake(RefusedHandshake { number, peer, why })
            }
            _ => return Err(InvalidFrame::Damaged),
        })
    }

    fn origin(&mut self) -> Field<(u64, Peer)> {
        Ok((self.fields.u64()?, self.peer()?))
    }

    fn datagram(&mut self) -> Field<Datagram> {
        let (number, peer) = self.origin()?;
        let restoration = match self.fields.u8()? {
            0 => Restoration::Complete,
            _ => Restoration::UnderWay,
        };
        let misused = Some(self.fields.u16()?).filter(|it| *it != 0);
        let datagram = Datagram::decode(number, peer, self.fields.bytes()?);
        let datagram = datagram.ok_or(InvalidFrame::Damaged)?;
        Ok(Datagram {
            message: datagram.message.with_misused_option(misused),
            restoration,
            ..datagram
        })
    }

    fn bare(&mut self) -> Field<UdpDatagram> {
        let (number, peer) = self.origin()?;
        Ok(UdpDatagram {
            number,
            peer,
            bytes: self.fields.bytes()?.to_vec(),
        })
    }
}

fn number_of_fault(fault: HandshakeFault) -> u8 {
    match fault {
        HandshakeFault::WrongKey => 0,
        HandshakeFault::NoKey => 1,
        HandshakeFault::Revoked => 2,
        HandshakeFault::UntrustedCertificate => 3,
        HandshakeFault::CertificateNotValidNow => 4,
        HandshakeFault::UnusableCertificate => 5,
        HandshakeFault::EndedByPeer => 6,
        HandshakeFault::Protocol => 7,
    }
}

fn fault_of(number: u8) -> Option<HandshakeFault> {
    let mut faults = FAULTS.into_iter();
    faults.find(|it| number_of_fault(*it) == number)
}
