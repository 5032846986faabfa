//! What can happen to a device, drawn by chance: what makes sense, what almost does, and what does
//! not.

use engine::action::Operation;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use protocol::coap::code::Code;
use protocol::coap::message::Kind;

/// One thing that happens to the machine.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Bytes without any sense.
    Noise(Vec<u8>),
    /// A message that makes sense, but for one byte.
    Garbled(Sense, Index, u8),
    /// A message that makes sense.
    Clear(Sense),
    /// A response of any kind to anything the device may know of.
    Told(Telling),
    /// Values nobody asked for, in any format.
    Sent(Sending),
    /// Somebody wants the device to do something.
    Submit(Operation, &'static str),
    /// The next deadline comes.
    Due,
}

/// What a device may mean to say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sense {
    Register,
    Update,
    Deregister,
    Answer,
    /// The answer to a request to observe.
    Agreement,
    Acknowledgement,
    Reset,
}

/// A response, in all that makes a difference.
#[derive(Clone, Debug)]
pub(crate) struct Telling {
    pub(crate) to: To,
    pub(crate) kind: Kind,
    pub(crate) code: Code,
    pub(crate) observe: Option<u32>,
    pub(crate) format: Option<u16>,
    pub(crate) block: Option<u32>,
    pub(crate) option: Option<u16>,
    pub(crate) payload: Vec<u8>,
}

/// A Send, in all that makes a difference.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    pub(crate) kind: Kind,
    pub(crate) format: Option<u16>,
    pub(crate) payload: Vec<u8>,
}

/// What a response belongs to.
#[derive(Clone, Debug)]
pub(crate) enum To {
    /// The request that was sent last.
    Asked,
    /// Something that is observed.
    Observed(Index),
}

/// What is asked for: single and multiple resources, several values, and what nobody knows.
pub(crate) const PATHS: [&str; 6] = ["/1/0/1", "/3/0", "/3303", "/3/0/6", "/5/0/0", "/32769/0/1"];

pub(crate) fn input() -> impl Strategy<Value = Input> {
    let operations = [
        Operation::Read,
        Operation::Write,
        Operation::Execute,
        Operation::ObserveStart,
        Operation::ObserveEnd,
    ];
    prop_oneof![
        vec(any::<u8>(), 0..60).prop_map(Input::Noise),
        (sense(), any::<Index>(), any::<u8>())
            .prop_map(|(sense, at, byte)| Input::Garbled(sense, at, byte)),
        sense().prop_map(Input::Clear),
        telling().prop_map(Input::Told),
        sending().prop_map(Input::Sent),
        (select(operations.to_vec()), select(PATHS.to_vec()))
            .prop_map(|(operation, path)| Input::Submit(operation, path)),
        Just(Input::Due),
    ]
}

pub(crate) fn telling() -> impl Strategy<Value = Telling> {
    let to = prop_oneof![Just(To::Asked), any::<Index>().prop_map(To::Observed)];
    let kinds = [
        Kind::Confirmable,
        Kind::NonConfirmable,
        Kind::Acknowledgement,
    ];
    let codes = [
        Code::CONTENT,
        Code::CONTENT,
        Code::CHANGED,
        Code::NOT_FOUND,
        Code::SERVICE_UNAVAILABLE,
    ];
    (
        to,
        select(kinds.to_vec()),
        select(codes.to_vec()),
        option::weighted(0.9, any::<u32>()),
        option::of(select(FORMATS.to_vec())),
        option::weighted(0.1, any::<u32>()),
        option::weighted(0.1, any::<u16>()),
        payload(),
    )
        .prop_map(
            |(to, kind, code, observe, format, block, option, payload)| Telling {
                to,
                kind,
                code,
                observe,
                format,
                block,
                option,
                payload,
            },
        )
}

pub(crate) fn sending() -> impl Strategy<Value = Sending> {
    let kinds = [Kind::Confirmable, Kind::NonConfirmable];
    let formats = option::weighted(0.9, select(FORMATS.to_vec()));
    (select(kinds.to_vec()), formats, payload()).prop_map(|(kind, format, payload)| Sending {
        kind,
        format,
        payload,
    })
}

/// The formats of LwM2M under their numbers, and one of nobody.
const FORMATS: [u16; 13] = [
    0, 40, 42, 60, 110, 112, 1541, 1542, 1543, 11_542, 11_543, 11_544, 60_000,
];

/// Values in each format.
const PAYLOADS: [&[u8]; 13] = [
    b"87",
    b"</3/0>,</3/0/9>;pmin=1",
    &[0xc1, 9, 87],
    &[0x08, 0, 3, 0xc1, 9, 87],
    &[0x18, 87],
    br#"[{"n":"/3/0/9","v":87}]"#,
    br#"[{"n":"/7/0/2","v":5},{"n":"/1/0/1","v":6}]"#,
    br#"[{"bn":"/3303/0/","bt":-9,"n":"5700","v":21.5},{"n":"5700","t":4,"v":22}]"#,
    br#"[{"bn":"/3/0/","bt":1700000000,"n":"14","vs":"a"},{"n":"7","vlo":"3:0"}]"#,
    br#"{"bn":"/3/0/","e":[{"n":"9","v":87},{"n":"14","sv":"+01:00"}],"bt":7}"#,
    // [{-2: "/3/0/9", 2: 87, 6: -1.5}]
    b"\x81\xa3\x21\x66/3/0/9\x02\x18\x57\x06\xf9\xbe\x00",
    // {3: {0: {9: 87}}}
    &[0xa1, 3, 0xa1, 0, 0xa1, 9, 0x18, 87],
    b"[]",
];

/// Bytes without any sense, values, and values but for one byte.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let clear = || select(PAYLOADS.to_vec()).prop_map(<[u8]>::to_vec);
    let garbled = (clear(), any::<Index>(), any::<u8>()).prop_map(|(mut bytes, at, byte)| {
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes
    });
    prop_oneof![vec(any::<u8>(), 0..40), clear(), garbled]
}

fn sense() -> impl Strategy<Value = Sense> {
    prop_oneof![
        Just(Sense::Register),
        Just(Sense::Update),
        Just(Sense::Deregister),
        Just(Sense::Answer),
        Just(Sense::Agreement),
        Just(Sense::Acknowledgement),
        Just(Sense::Reset),
    ]
}
