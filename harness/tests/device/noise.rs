//! Can any input from the network stop a device or make it spin?

use harness::device::SimulatedDevice;
use harness::device::configuration::{Configuration, Notify, Reachability};
use harness::device::event::DeviceOutput;
use harness::device::resource::AnswerMode;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::world::{at, created};

/// Everything that can happen to a device.
#[derive(Clone, Debug)]
enum Step {
    Datagram(Vec<u8>),
    Request(MessageKind, u8, Vec<u16>, Vec<u8>),
    Observe(u32, u64, Vec<u16>),
    AnswerLast(u8, Vec<u8>),
    AcknowledgeLast,
    RejectLast,
    Created,
    Pass(i64),
    Timeout,
    Update,
    Wake,
    Sleep,
    Reboot,
    PowerOff,
    Start,
    Deregister,
    Press,
}

proptest! {
    #[test]
    fn any_datagram_is_survived(datagrams in vec(vec(any::<u8>(), 0..80), 1..20)) {
        let (mut device, mut out) = registering();
        for datagram in datagrams {
            device.handle_datagram(0, &datagram, &mut out);
        }
        prop_assert_eq!(device.performed_count(), 0);
    }

    #[test]
    fn a_confirmable_request_with_any_options_is_answered_once(
        options in vec((any::<u16>(), vec(any::<u8>(), 0..8)), 0..6),
        code in 1_u8..32,
        payload in vec(any::<u8>(), 0..20),
    ) {
        let (mut device, mut out) = registering();
        out.clear();
        let code = Code::from_byte(code);
        let request = Message::request(MessageKind::Confirmable, code, MessageId(1), Token::EMPTY);
        let request = options
            .iter()
            .fold(request, |request, (number, value)| request.with_option(*number, value))
            .with_payload(payload);
        device.handle_datagram(0, &request.encode(), &mut out);
        let sends = out.iter().filter(|output| matches!(output, DeviceOutput::Send(_))).count();
        prop_assert_eq!(sends, 1);
    }

    #[test]
    fn after_any_input_time_advances(steps in vec(any_step(), 1..60), seed in any::<u64>()) {
        let mut device = SimulatedDevice::new(moody(), seed);
        let (mut now_ms, mut out, mut last) = (1_000, Vec::new(), Vec::new());
        for step in steps {
            let before = out.len();
            now_ms = take(&mut device, now_ms, &step, &last, &mut out);
            if let Some(DeviceOutput::Send(datagram)) = out.iter().skip(before).next_back() {
                last.clone_from(datagram);
            }
            device.handle_timeout(now_ms, &mut out);
            device.handle_timeout(now_ms, &mut out);
            prop_assert!(device.next_timeout().is_none_or(|next_ms| next_ms > now_ms));
            prop_assert!(!(device.is_asleep() && device.is_listening()));
        }
    }
}

fn take(
    device: &mut SimulatedDevice,
    now_ms: i64,
    step: &Step,
    last: &[u8],
    out: &mut Vec<DeviceOutput>,
) -> i64 {
    match step {
        Step::Datagram(datagram) => device.handle_datagram(now_ms, datagram, out),
        Step::Request(kind, code, path, payload) => {
            let request =
                Message::request(*kind, Code::from_byte(*code), MessageId(9), Token::EMPTY)
                    .with_uri_path(path.iter().map(u16::to_string))
                    .with_payload(payload.clone());
            device.handle_datagram(now_ms, &request.encode(), out);
        }
        Step::Observe(observe, token, path) => {
            let token = Token::from_u64(*token);
            let request =
                Message::request(MessageKind::Confirmable, Code::GET, MessageId(9), token)
                    .with_uri_path(path.iter().map(u16::to_string))
                    .with_observe(*observe);
            device.handle_datagram(now_ms, &request.encode(), out);
        }
        Step::AcknowledgeLast => react_to(device, now_ms, last, Message::acknowledgement, out),
        Step::RejectLast => react_to(device, now_ms, last, Message::reset, out),
        Step::AnswerLast(code, options) => {
            if let Ok(last) = Message::decode(last) {
                let code = Code::from_byte(*code);
                let answer = Message::response_to(&last, code, MessageId(8));
                let answer = answer.with_option(14, options);
                device.handle_datagram(now_ms, &answer.encode(), out);
            }
        }
        Step::Created => {
            if let Ok(last) = Message::decode(last) {
                device.handle_datagram(now_ms, &created(&last).encode(), out);
            }
        }
        Step::Pass(for_ms) => return now_ms + for_ms,
        Step::Timeout => return device.next_timeout().unwrap_or(now_ms).max(now_ms),
        Step::Update => device.update(now_ms, out),
        Step::Wake => device.wake(now_ms, out),
        Step::Sleep => device.sleep(now_ms, out),
        Step::Reboot => device.reboot(now_ms, out),
        Step::PowerOff => device.power_off(),
        Step::Start => device.handle_start(now_ms, out),
        Step::Deregister => device.deregister(now_ms, out),
        Step::Press => drop(device.press(at("/3/0/9"))),
    }
    now_ms
}

fn react_to(
    device: &mut SimulatedDevice,
    now_ms: i64,
    last: &[u8],
    react: impl FnOnce(MessageId) -> Message,
    out: &mut Vec<DeviceOutput>,
) {
    if let Ok(last) = Message::decode(last) {
        device.handle_datagram(now_ms, &react(last.message_id).encode(), out);
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        Just(MessageKind::Confirmable),
        Just(MessageKind::NonConfirmable)
    ];
    let path = prop_oneof![
        Just(vec![1, 0, 4]),
        Just(vec![1, 0, 1]),
        Just(vec![1, 0, 8]),
        Just(vec![3, 0, 4]),
        Just(vec![3, 0, 0]),
        Just(vec![3, 0, 9]),
        Just(vec![3]),
        vec(0_u16..7, 0..5),
    ];
    let path = path.boxed();
    let payload = prop_oneof![Just(b"60".to_vec()), vec(any::<u8>(), 0..9)];
    prop_oneof![
        vec(any::<u8>(), 0..40).prop_map(Step::Datagram),
        (kind, 1_u8..6, path.clone(), payload)
            .prop_map(|(kind, code, path, payload)| Step::Request(kind, code, path, payload)),
        (0_u32..3, 0_u64..3, path)
            .prop_map(|(observe, token, path)| Step::Observe(observe, token, path)),
        Just(Step::AcknowledgeLast),
        Just(Step::RejectLast),
        (0x40_u8..0xC0, vec(any::<u8>(), 0..5))
            .prop_map(|(code, options)| Step::AnswerLast(code, options)),
        Just(Step::Created),
        Just(Step::Created),
        (0_i64..400_000).prop_map(Step::Pass),
        Just(Step::Timeout),
        Just(Step::Timeout),
        Just(Step::Update),
        Just(Step::Wake),
        Just(Step::Sleep),
        Just(Step::Reboot),
        Just(Step::PowerOff),
        Just(Step::Start),
        Just(Step::Deregister),
        Just(Step::Press),
    ]
}

fn moody() -> Configuration {
    let reachability = Reachability::Queue {
        awake_window_ms: 5_000,
    };
    let mut configuration = Configuration {
        reachability,
        notify: Notify::Confirmable,
        ..Configuration::new("lamp")
    };
    let answers = [
        AnswerMode::SeparateConfirmable { after_ms: 500 },
        AnswerMode::SeparateNonConfirmable { after_ms: 0 },
        AnswerMode::Piggybacked,
        AnswerMode::NonConfirmable,
    ];
    for (resource, answer) in configuration
        .resources
        .iter_mut()
        .zip(answers.iter().cycle())
    {
        resource.answer = *answer;
    }
    configuration
}

fn registering() -> (SimulatedDevice, Vec<DeviceOutput>) {
    let mut device = SimulatedDevice::new(Configuration::new("lamp"), 7);
    let mut out = Vec::new();
    device.handle_start(0, &mut out);
    (device, out)
}
