//! What can happen to a device, drawn by chance: what makes sense, what almost does, and what does
//! not.

use engine::action::{Method, Mode, Operation};
use engine::effect::SendOutcome;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::MessageKind;

/// One thing that happens to the machine.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Bytes without any sense.
    Noise(Vec<u8>, Sender),
    /// A message that makes sense, but for one byte.
    Garbled(RequestMeaning, Index, u8),
    /// A message that makes sense.
    Clear(RequestMeaning, Sender),
    /// A response of any kind to anything the device may know of.
    Told(ResponseShape),
    /// What nobody asked for: values, data, or a registration, whole or a block of it.
    Said(RequestShape),
    /// The same, block after block.
    SaidInBlocks(RequestShape),
    /// Bytes of no protocol, in datagrams one behind the other.
    Bare(Vec<Vec<u8>>, Sender),
    /// The socket says what became of a bare datagram.
    Departed(SendOutcome),
    /// Somebody wants something of the device.
    Submit(CallerCommand, Mode),
    /// Somebody takes all back that waits.
    CancelAll,
    /// The customer says where the device is at home, or that it is nowhere at home.
    Amend(AddressSetting),
    /// The next deadline comes.
    Due,
}

/// Whether the customer said where the device is at home.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AddressSetting {
    Known,
    Unknown,
    /// At an address where somebody else was before.
    Elsewhere,
}

/// Where a datagram comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sender {
    /// Where the device is at home.
    Home,
    /// The same address, another port.
    Port,
    /// Another address.
    Elsewhere,
    /// Where the device was asked last.
    Asked,
    /// An address that several devices have.
    Shared,
}

/// What somebody may want of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallerCommand {
    /// An operation on a path.
    Operation(Operation, &'static str),
    /// A CoAP request with so many bytes, to a port.
    Request(Method, usize, u16),
    /// A bare datagram.
    Datagram,
}

/// What a device may mean to say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestMeaning {
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
pub(crate) struct ResponseShape {
    pub(crate) to: ResponseTarget,
    pub(crate) from: Sender,
    pub(crate) kind: MessageKind,
    pub(crate) code: Code,
    pub(crate) observe: Option<u32>,
    pub(crate) format: Option<u16>,
    pub(crate) block1: Option<Block>,
    pub(crate) block2: Option<Block>,
    pub(crate) option: Option<u16>,
    pub(crate) payload: Vec<u8>,
}

/// A request of the device with a payload, in all that makes a difference.
#[derive(Clone, Debug)]
pub(crate) struct RequestShape {
    pub(crate) what: PayloadMeaning,
    pub(crate) from: Sender,
    pub(crate) kind: MessageKind,
    pub(crate) format: Option<u16>,
    pub(crate) block: Option<Block>,
    pub(crate) payload: Vec<u8>,
}

/// What a device says with a payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PayloadMeaning {
    Register,
    Update,
    Send,
    /// Data, with these arguments.
    Data(&'static [&'static str]),
}

/// What a response belongs to.
#[derive(Clone, Debug)]
pub(crate) enum ResponseTarget {
    /// The request that was sent last.
    Asked,
    /// Something that is observed.
    Observed(Index),
}

/// What is asked for: single and multiple resources, several values, and what nobody knows.
pub(crate) const PATHS: [&str; 6] = ["/1/0/1", "/3/0", "/3303", "/3/0/6", "/5/0/0", "/32769/0/1"];

pub(crate) fn input() -> impl Strategy<Value = Input> {
    let departures = [SendOutcome::Sent, SendOutcome::Refused];
    let modes = [Mode::SendNow, Mode::SendWhenActive];
    prop_oneof![
        (vec(any::<u8>(), 0..60), from()).prop_map(|(bytes, from)| Input::Noise(bytes, from)),
        (sense(), any::<Index>(), any::<u8>())
            .prop_map(|(sense, at, byte)| Input::Garbled(sense, at, byte)),
        (sense(), from()).prop_map(|(sense, from)| Input::Clear(sense, from)),
        telling().prop_map(Input::Told),
        saying().prop_map(Input::Said),
        saying().prop_map(Input::SaidInBlocks),
        (vec(payload(), 1..4), from()).prop_map(|(burst, from)| Input::Bare(burst, from)),
        select(departures.to_vec()).prop_map(Input::Departed),
        (asking(), select(modes.to_vec())).prop_map(|(asking, mode)| Input::Submit(asking, mode)),
        Just(Input::CancelAll),
        select(vec![
            AddressSetting::Known,
            AddressSetting::Unknown,
            AddressSetting::Elsewhere
        ])
        .prop_map(Input::Amend),
        Just(Input::Due),
    ]
}

/// What a device answers that is asked a lot: blocks of what is long, and what ends them.
pub(crate) fn exchanging() -> impl Strategy<Value = Input> {
    let telling = telling().prop_map(|telling| ResponseShape {
        to: ResponseTarget::Asked,
        from: Sender::Asked,
        option: None,
        ..telling
    });
    prop_oneof![
        4 => telling.prop_map(Input::Told),
        2 => asking().prop_map(|asking| Input::Submit(asking, Mode::SendNow)),
        1 => Just(Input::Departed(SendOutcome::Sent)),
        1 => sense().prop_map(|sense| Input::Clear(sense, Sender::Home)),
        1 => Just(Input::Due),
    ]
}

fn from() -> impl Strategy<Value = Sender> {
    prop_oneof![
        6 => Just(Sender::Home),
        2 => Just(Sender::Port),
        1 => Just(Sender::Elsewhere),
        3 => Just(Sender::Asked),
        1 => Just(Sender::Shared),
    ]
}

pub(crate) fn asking() -> impl Strategy<Value = CallerCommand> {
    let operations = [
        Operation::Read,
        Operation::Write,
        Operation::Execute,
        Operation::ObserveStart,
        Operation::ObserveEnd,
    ];
    let operation = (select(operations.to_vec()), select(PATHS.to_vec()))
        .prop_map(|(operation, path)| CallerCommand::Operation(operation, path));
    let methods = select(Method::ALL.to_vec());
    let ports = select(vec![5683_u16, 5685, 7777]);
    let request = (methods, 0..100_usize, ports)
        .prop_map(|(method, bytes, port)| CallerCommand::Request(method, bytes, port));
    prop_oneof![operation, request, Just(CallerCommand::Datagram)]
}

pub(crate) fn telling() -> impl Strategy<Value = ResponseShape> {
    let to = prop_oneof![
        Just(ResponseTarget::Asked),
        any::<Index>().prop_map(ResponseTarget::Observed)
    ];
    let kinds = [
        MessageKind::Confirmable,
        MessageKind::NonConfirmable,
        MessageKind::Acknowledgement,
    ];
    let codes = [
        Code::CONTENT,
        Code::CONTENT,
        Code::CHANGED,
        Code::CONTINUE,
        Code::NOT_FOUND,
        Code::REQUEST_ENTITY_INCOMPLETE,
        Code::REQUEST_ENTITY_TOO_LARGE,
        Code::SERVICE_UNAVAILABLE,
    ];
    let blocks = (
        option::weighted(0.3, block()),
        option::weighted(0.4, block()),
    );
    (
        (to, from()),
        (select(kinds.to_vec()), select(codes.to_vec())),
        option::weighted(0.9, any::<u32>()),
        option::of(select(FORMATS.to_vec())),
        blocks,
        option::weighted(0.1, any::<u16>()),
        payload(),
    )
        .prop_map(
            |((to, from), (kind, code), observe, format, (block1, block2), option, payload)| {
                ResponseShape {
                    to,
                    from,
                    kind,
                    code,
                    observe,
                    format,
                    block1,
                    block2,
                    option,
                    payload,
                }
            },
        )
}

pub(crate) fn saying() -> impl Strategy<Value = RequestShape> {
    let kinds = [MessageKind::Confirmable, MessageKind::NonConfirmable];
    let topics: [&'static [&'static str]; 4] = [&["t=a"], &["t=b"], &[], &["t=+"]];
    let what = prop_oneof![
        1 => Just(PayloadMeaning::Register),
        1 => Just(PayloadMeaning::Update),
        3 => Just(PayloadMeaning::Send),
        3 => select(topics.to_vec()).prop_map(PayloadMeaning::Data),
    ];
    let formats = option::weighted(0.9, select(FORMATS.to_vec()));
    (
        what,
        from(),
        select(kinds.to_vec()),
        formats,
        option::weighted(0.5, block()),
        payload(),
    )
        .prop_map(|(what, from, kind, format, block, payload)| RequestShape {
            what,
            from,
            kind,
            format,
            block,
            payload,
        })
}

/// Blocks that may fit together, mostly the smallest, and any at all.
fn block() -> impl Strategy<Value = Block> {
    let mores = select(vec![More::Yes, More::No]);
    let sizes = select(vec![16_u16, 16, 16, 32, 1_024]);
    let likely = (0..4_u32, mores, sizes).prop_map(|(number, more, bytes)| {
        let size = BlockSize::of_bytes(bytes).expect("it is a size of blocks");
        Block::new(number, more, size)
    });
    prop_oneof![9 => likely, 1 => any::<u32>().prop_map(Block::from_value)]
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
    // What fits the smallest block exactly may be followed by others.
    prop_oneof![
        vec(any::<u8>(), 0..40),
        vec(any::<u8>(), 16),
        clear(),
        garbled
    ]
}

fn sense() -> impl Strategy<Value = RequestMeaning> {
    prop_oneof![
        Just(RequestMeaning::Register),
        Just(RequestMeaning::Update),
        Just(RequestMeaning::Deregister),
        Just(RequestMeaning::Answer),
        Just(RequestMeaning::Agreement),
        Just(RequestMeaning::Acknowledgement),
        Just(RequestMeaning::Reset),
    ]
}
