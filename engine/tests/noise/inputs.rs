//! Random inputs of a device: valid ones, nearly valid ones, and noise.

use engine::action::{Method, Mode, Operation};
use engine::effect::{SendOutcome, SendRefusal};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::MessageKind;

/// One input of the machine.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Random bytes.
    Noise(Vec<u8>, Sender),
    /// A valid message with one changed byte.
    Garbled(RequestMeaning, Index, u8),
    /// A valid message.
    Clear(RequestMeaning, Sender),
    /// A response of any kind to the last request or an observation.
    Response(ResponseShape),
    /// A request of the device: values, data, or a registration, whole or one block of it.
    Request(RequestShape),
    /// The same, in all its blocks.
    RequestInBlocks(RequestShape),
    /// A burst of bare datagrams.
    Bare(Vec<Vec<u8>>, Sender),
    /// The outcome of sending a bare datagram.
    Departed(SendOutcome),
    /// A caller submits a request.
    Submit(CallerCommand, Mode),
    /// A caller cancels all scheduled requests.
    CancelAll,
    /// The customer sets or removes the address of the device.
    Amend(AddressSetting),
    /// The next deadline comes.
    Due,
}

/// The address of the device in its profile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AddressSetting {
    Known,
    Unknown,
    /// Another address.
    Elsewhere,
}

/// Where a datagram comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sender {
    /// The address of the device.
    Home,
    /// The same address, another port.
    Port,
    /// Another address.
    Elsewhere,
    /// Where the last request to the device went.
    LastRequest,
    /// An address that several devices have.
    Shared,
}

/// What a caller may request of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallerCommand {
    /// An operation on a path.
    Operation(Operation, &'static str),
    /// A CoAP request with so many bytes, to a port.
    Request(Method, usize, u16),
    /// A bare datagram.
    Datagram,
}

/// The meaning of a message of a device.
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

/// A response, with all fields that matter.
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

/// A request of the device with a payload, with all fields that matter.
#[derive(Clone, Debug)]
pub(crate) struct RequestShape {
    pub(crate) what: PayloadMeaning,
    pub(crate) from: Sender,
    pub(crate) kind: MessageKind,
    pub(crate) format: Option<u16>,
    pub(crate) block: Option<Block>,
    pub(crate) payload: Vec<u8>,
}

/// The meaning of a request with a payload.
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
    /// The last request to the device.
    LastRequest,
    /// An observation.
    Observed(Index),
}

/// Requested paths: single and multiple resources, several values, and an unknown object.
pub(crate) const PATHS: [&str; 6] = ["/1/0/1", "/3/0", "/3303", "/3/0/6", "/5/0/0", "/32769/0/1"];

pub(crate) fn input() -> impl Strategy<Value = Input> {
    let outcomes = [
        SendOutcome::Sent,
        SendOutcome::Refused(SendRefusal::NoRoute),
    ];
    let modes = [Mode::SendNow, Mode::SendWhenActive];
    prop_oneof![
        (vec(any::<u8>(), 0..60), sender()).prop_map(|(bytes, from)| Input::Noise(bytes, from)),
        (meaning(), any::<Index>(), any::<u8>())
            .prop_map(|(meaning, at, byte)| Input::Garbled(meaning, at, byte)),
        (meaning(), sender()).prop_map(|(meaning, from)| Input::Clear(meaning, from)),
        response_shape().prop_map(Input::Response),
        request_shape().prop_map(Input::Request),
        request_shape().prop_map(Input::RequestInBlocks),
        (vec(payload(), 1..4), sender()).prop_map(|(burst, from)| Input::Bare(burst, from)),
        select(outcomes.to_vec()).prop_map(Input::Departed),
        (caller_command(), select(modes.to_vec()))
            .prop_map(|(command, mode)| Input::Submit(command, mode)),
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

/// Answers of a device that gets many requests: blocks of long bodies, and what ends a transfer.
pub(crate) fn exchanging() -> impl Strategy<Value = Input> {
    let shape = response_shape().prop_map(|shape| ResponseShape {
        to: ResponseTarget::LastRequest,
        from: Sender::LastRequest,
        option: None,
        ..shape
    });
    prop_oneof![
        4 => shape.prop_map(Input::Response),
        2 => caller_command().prop_map(|command| Input::Submit(command, Mode::SendNow)),
        1 => Just(Input::Departed(SendOutcome::Sent)),
        1 => meaning().prop_map(|meaning| Input::Clear(meaning, Sender::Home)),
        1 => Just(Input::Due),
    ]
}

fn sender() -> impl Strategy<Value = Sender> {
    prop_oneof![
        6 => Just(Sender::Home),
        2 => Just(Sender::Port),
        1 => Just(Sender::Elsewhere),
        3 => Just(Sender::LastRequest),
        1 => Just(Sender::Shared),
    ]
}

pub(crate) fn caller_command() -> impl Strategy<Value = CallerCommand> {
    let operations = [
        Operation::Read,
        Operation::Write,
        Operation::Execute,
        Operation::ObserveStart,
        Operation::ObserveEnd,
        Operation::Discover,
        Operation::Create,
        Operation::Delete,
        Operation::WriteAttributes,
        Operation::WriteInstance,
        Operation::ReadComposite,
        Operation::WriteComposite,
        Operation::ObserveCompositeStart,
        Operation::ObserveCompositeEnd,
    ];
    let operation = (select(operations.to_vec()), select(PATHS.to_vec()))
        .prop_map(|(operation, path)| CallerCommand::Operation(operation, path));
    let methods = select(Method::ALL.to_vec());
    let ports = select(vec![5683_u16, 5685, 7777]);
    let request = (methods, 0..100_usize, ports)
        .prop_map(|(method, bytes, port)| CallerCommand::Request(method, bytes, port));
    prop_oneof![operation, request, Just(CallerCommand::Datagram)]
}

pub(crate) fn response_shape() -> impl Strategy<Value = ResponseShape> {
    let to = prop_oneof![
        Just(ResponseTarget::LastRequest),
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
        (to, sender()),
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

pub(crate) fn request_shape() -> impl Strategy<Value = RequestShape> {
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
        sender(),
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

/// The content formats of LwM2M, and an unknown one.
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

/// Random bytes, values, and values with one changed byte.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let clear = || select(PAYLOADS.to_vec()).prop_map(<[u8]>::to_vec);
    let garbled = (clear(), any::<Index>(), any::<u8>()).prop_map(|(mut bytes, at, byte)| {
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes
    });
    // Payloads of exactly the smallest block may be followed by further blocks.
    prop_oneof![
        vec(any::<u8>(), 0..40),
        vec(any::<u8>(), 16),
        clear(),
        garbled
    ]
}

fn meaning() -> impl Strategy<Value = RequestMeaning> {
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
