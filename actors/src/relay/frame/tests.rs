//! Are frames read as they were written, and damaged ones refused?

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use engine::associations::export::SessionRecord;
use engine::associations::handshake::{HandshakeFault, HandshakeOutcome};
use engine::datagram::{Datagram, Inbound, RefusedHandshake, UdpDatagram};
use engine::dispatch::router::{DatagramRecipient, ForwardedDatagram, ReceivedBy, RouteHint};
use engine::ids::{DeviceKey, NodeId};
use engine::location::Location;
use engine::peer::Transport;

use super::*;

const ARBITERS: usize = 4;

/// A POST with a token, a path and a payload.
const REQUEST: &[u8] = b"\x42\x02\x12\x34\xAA\xBB\xB2rd\xFFdata";

/// A 2.05 with a Block2 of four bytes (RFC 7959 section 2.1 allows three).
const MISUSED: &[u8] = b"\x50\x45\x12\x35\xD4\x0A1234\xFFdata";

#[test]
fn frames_are_read_as_they_were_written_whatever_parts_arrive() {
    let mut stream = Vec::new();
    let mut expected = Vec::new();
    for frame in datagrams() {
        frame.write(&mut stream);
        expected.push(text_of(&StreamFrame::Datagram(frame)));
        write_batch(arbiter(3), &batch(), &place_of, &mut stream);
        expected.push(text_of(&StreamFrame::Batch(arbiter(3), batch())));
    }
    for size in [1, 2, 4, 5, 44, 45, 46, 50_000, stream.len()] {
        let read = read(&stream, size).unwrap();
        assert!(read == expected, "{size}");
    }
}

#[test]
fn a_misused_option_of_a_message_is_read_too() {
    let [peer, ..] = peers();
    let stream = written(&ForwardBatch {
        datagrams: vec![for_peer(datagram(1, peer, MISUSED))],
        ..ForwardBatch::default()
    });
    let mut misused = Vec::new();
    read_each(&stream, stream.len(), |frame| {
        let StreamFrame::Batch(_, batch) = frame else {
            panic!("{frame:?}");
        };
        for forwarded in batch.datagrams {
            let DatagramRecipient::Peer { datagram, .. } = forwarded.recipient else {
                panic!("{forwarded:?}");
            };
            misused.push(datagram.message.misused_option());
        }
    })
    .unwrap();
    assert_eq!(misused, [Some(23)]);
}

#[test]
fn a_batch_that_is_too_long_for_a_frame_takes_several() {
    let [peer, ..] = peers();
    let too_long = || (peer, vec![9; FRAME_BYTES_MAX]);
    let mut records = vec![too_long()];
    records.extend((0..9).map(|number| (peer, vec![number; 1 << 20])));
    records.push(too_long());
    let stream = written(&ForwardBatch {
        records,
        ..ForwardBatch::default()
    });
    let mut frames: Vec<Vec<u8>> = Vec::new();
    read_each(&stream, 1 << 20, |frame| {
        let StreamFrame::Batch(to, batch) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!(to, arbiter(2));
        assert!(batch.records.iter().all(|(_, it)| it.len() == 1 << 20));
        frames.push(batch.records.iter().map(|(_, it)| it[0]).collect());
    })
    .unwrap();
    assert_eq!(frames, [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8]]);
}

#[test]
fn a_datagram_that_is_too_long_for_udp_is_left_out() {
    let mut stream = Vec::new();
    let [frame, ..] = datagrams();
    let datagram = &[0; 65_536];
    Frame { datagram, ..frame }.write(&mut stream);
    assert_eq!(stream, b"");
}

#[test]
fn a_batch_that_ends_early_is_incomplete_or_damaged() {
    let batch = batch();
    let stream = written(&batch);
    let mut complete = 0;
    for bytes in LENGTH_BYTES..stream.len() {
        let mut short = stream[..bytes].to_vec();
        assert_eq!(read(&short, bytes), Ok(vec![]));
        end_frame(0, &mut short);
        match read(&short, bytes) {
            Ok(_) => complete += 1,
            Err(fault) => assert_eq!(fault, InvalidFrame::Damaged),
        }
    }
    // It may end after the arbiter and between items.
    assert_eq!(complete, items_of(&batch));
}

#[test]
fn a_changed_byte_never_makes_the_reader_panic() {
    let stream = written(&batch());
    for at in 0..stream.len() {
        for mask in [0x01, 0x80, 0xFF] {
            let mut changed = stream.clone();
            changed[at] ^= mask;
            let _ = read_each(&changed, changed.len(), |_| {});
        }
    }
}

#[test]
fn bytes_of_another_protocol_or_version_are_refused() {
    let request = b"GET /api/v1/devices HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for (stream, fault) in [
        (&request[..], InvalidFrame::TooLong(0x4745_5420)),
        (b"\x00\x40\x00\x01", InvalidFrame::TooLong((4 << 20) + 1)),
        (b"\0\0\0\0", InvalidFrame::Damaged),
        (b"\0\0\0\x01\x00", InvalidFrame::Damaged),
        (b"\0\0\0\x01\x02", InvalidFrame::UnknownKind(2)),
        (b"\0\0\0\x02\x00\x03", InvalidFrame::UnknownTransport(3)),
        (b"\0\0\0\x03\x01\x00\x04", InvalidFrame::UnknownArbiter(4)),
        (b"\0\0\0\x04\x01\x00\x03\x06", InvalidFrame::Damaged),
    ] {
        assert_eq!(read(stream, stream.len()), Err(fault));
    }
}

/// Each frame of a stream that arrives in parts of a size.
fn read(stream: &[u8], size: usize) -> Result<Vec<String>, InvalidFrame> {
    let mut read = Vec::new();
    read_each(stream, size, |frame| read.push(text_of(&frame)))?;
    Ok(read)
}

fn read_each(
    stream: &[u8],
    size: usize,
    mut take: impl FnMut(StreamFrame<'_>),
) -> Result<(), InvalidFrame> {
    let context = BatchContext {
        shard_map: ShardMap::among(ARBITERS),
        local_at: &local_at,
    };
    let mut reader = FrameReader::default();
    let mut parts = stream.chunks(size);
    parts.try_for_each(|part| reader.read(part, &context, &mut take))
}

fn written(batch: &ForwardBatch) -> Vec<u8> {
    let mut stream = Vec::new();
    write_batch(arbiter(2), batch, &place_of, &mut stream);
    stream
}

/// What is in a frame; the type of a record of a session does not show its content.
fn text_of(frame: &StreamFrame<'_>) -> String {
    let sessions: &[Arc<SessionRecord>] = match frame {
        StreamFrame::Datagram(_) => &[],
        StreamFrame::Batch(_, batch) => &batch.cached_sessions,
    };
    let sessions: Vec<&[u8]> = sessions.iter().map(|it| it.as_slice()).collect();
    format!("{frame:?} {sessions:?}")
}

fn items_of(batch: &ForwardBatch) -> usize {
    let ForwardBatch {
        datagrams,
        route_hints,
        records,
        secured,
        cached_sessions,
        strangers,
    } = batch;
    let of_devices = datagrams.len() + route_hints.len() + strangers.len();
    of_devices + records.len() + secured.len() + cached_sessions.len()
}

fn datagrams() -> [Frame<'static>; 3] {
    let frame = |peer: &str, transport, at: &str, datagram| Frame {
        peer: Peer::at(peer.parse().unwrap(), transport),
        at: at.parse().unwrap(),
        datagram,
    };
    [
        frame("10.0.0.7:5683", Transport::Coap, "10.0.2.1", b"one"),
        frame("[2001:db8::7]:1", Transport::Coaps, "2001:db8::1", b""),
        frame("[fe80::7%3]:65535", Transport::Udp, "fe80::1", &[7; 65_535]),
    ]
}

/// A batch with every kind of item.
fn batch() -> ForwardBatch {
    let (device, [plain, secured, bare]) = (device(), peers());
    let to_devices = arrivals().into_iter();
    let to_devices = to_devices.map(|arrival| ForwardedDatagram {
        recipient: DatagramRecipient::Device(device, arrival),
        received_by: ReceivedBy {
            arbiter: arbiter(0),
            needs_hint: true,
        },
    });
    let to_location = ForwardedDatagram {
        recipient: DatagramRecipient::Location(
            Location::new(device, 0xDEAD_BEEF),
            datagram(20, plain, REQUEST),
        ),
        received_by: ReceivedBy {
            arbiter: arbiter(3),
            needs_hint: false,
        },
    };
    let to_peer = for_peer(datagram(21, secured, MISUSED));
    let hint = |to, peer, of| RouteHint {
        to: arbiter(to),
        peer,
        arbiter: arbiter(of),
    };
    ForwardBatch {
        datagrams: to_devices.chain([to_location, to_peer]).collect(),
        route_hints: vec![hint(2, plain, 1), hint(0, bare, 3)],
        records: vec![(secured, b"record".to_vec()), (plain, vec![])],
        secured: vec![(device, b"message".to_vec())],
        cached_sessions: vec![Arc::new(SessionRecord::new(b"session".to_vec()))],
        strangers: vec![bare, secured],
    }
}

/// Every kind of input for a device.
fn arrivals() -> Vec<Inbound> {
    let [plain, secured, peer] = peers();
    let bare = |number, bytes: &[u8]| UdpDatagram {
        number,
        peer,
        bytes: bytes.to_vec(),
    };
    let more = vec![bare(7, b""), bare(u64::MAX, b"three")];
    let arrivals = [
        Inbound::Message(datagram(1, secured, REQUEST)),
        Inbound::Ambiguous(datagram(2, plain, MISUSED)),
        Inbound::BootstrapOnly(datagram(3, secured, REQUEST)),
        Inbound::Udp(bare(4, b"one")),
        Inbound::UdpBurst(bare(5, b"alone"), vec![]),
        Inbound::UdpBurst(bare(6, b"two"), more),
    ];
    let refused = |why: HandshakeFault| {
        Inbound::RefusedHandshake(RefusedHandshake {
            number: 8,
            peer: plain,
            why,
        })
    };
    let faults = HandshakeOutcome::ALL.into_iter().filter_map(|outcome| {
        let HandshakeOutcome::Refused(why) = outcome else {
            return None;
        };
        Some(why)
    });
    arrivals.into_iter().chain(faults.map(refused)).collect()
}

fn datagram(number: u64, peer: Peer, message: &[u8]) -> Datagram {
    Datagram::decode(number, peer, message).unwrap()
}

fn for_peer(datagram: Datagram) -> ForwardedDatagram {
    ForwardedDatagram {
        recipient: DatagramRecipient::Peer {
            datagram,
            arbiters_left: 3,
        },
        received_by: ReceivedBy {
            arbiter: arbiter(1),
            needs_hint: false,
        },
    }
}

fn device() -> DeviceKey {
    DeviceKey::from_bytes([7; 16])
}

fn arbiter(number: u16) -> ArbiterId {
    ShardMap::among(ARBITERS).numbered(number).unwrap()
}

/// A peer without security, one with an association, and one that sends bare datagrams to an
/// address that is not known.
fn peers() -> [Peer; 3] {
    let addresses = ["10.0.0.7:5683", "[2001:db8::7]:1", "[fe80::7%3]:65535"];
    let [plain, secured, bare] = addresses.map(|it| it.parse::<SocketAddr>().unwrap());
    let local = |number| NonZeroU16::new(number).map(LocalAddressId);
    [
        Peer::plain(plain).sent_to(local(1)),
        Peer::secured(secured)
            .of_device(device())
            .sent_to(local(u16::MAX)),
        Peer::bare(bare),
    ]
}

/// The address with a number is that of the stream with this number.
fn place_of(peer: Peer) -> (RelayId, IpAddr) {
    let stream = peer.local.map_or(0, |LocalAddressId(number)| number.get());
    let at = match stream {
        0 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::new(10, 0, 2, 1)),
    };
    let node = NodeId::from_bytes([9; 16]);
    (RelayId { node, stream }, at)
}

fn local_at(relay: RelayId, at: IpAddr) -> Option<LocalAddressId> {
    let [peer, ..] = peers();
    let local = NonZeroU16::new(relay.stream).map(LocalAddressId);
    local.filter(|_| place_of(peer.sent_to(local)) == (relay, at))
}
