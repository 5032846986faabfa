//! Do the devices of a load send the right datagrams, and count what they receive?

use super::super::arrivals::ArrivalPattern;
use super::super::behaviour::{LinkSecurity, SendValues};
use super::super::sleep_cycle::SleepTimes;
use super::*;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::MessageId;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// A server in a few lines: its answer to a datagram of a device.
type Server<'a> = dyn FnMut(&Message) -> Option<Message> + 'a;

fn group(count: u32, loss_percent: u8) -> DeviceGroup {
    let behaviour = DeviceBehaviour {
        pattern: "meter-{:03}".parse().unwrap(),
        lifetime_s: 300,
        transmission: Transmission::STANDARD,
        loss_percent,
        sleep: None,
        sends: SendValues {
            label: 7,
            recording: Recording::On,
        },
        security: LinkSecurity::None,
        sessions: SessionUse::UntilTimeout,
    };
    gather(behaviour, count)
}

fn gather(behaviour: DeviceBehaviour, count: u32) -> DeviceGroup {
    let devices = DeviceRange { first: 100, count };
    let share = ArrivalShare { index: 1, of: 2 };
    DeviceGroup::gather(behaviour, devices, share, 7)
}

fn registering(arrivals: ArrivalPattern) -> LoadTask {
    let share = ArrivalShare { index: 0, of: 1 };
    LoadTask::Register(ArrivalSchedule::begin(arrivals, share, 0, u64::MAX))
}

fn updating(arrivals: ArrivalPattern, now_ns: u64, until_ns: u64) -> LoadTask {
    let share = ArrivalShare { index: 0, of: 1 };
    LoadTask::Repeat(
        RequestMix::UPDATES,
        ArrivalSchedule::begin(arrivals, share, now_ns, until_ns),
    )
}

/// Runs the group until it is done, with a response time of a millisecond. Returns the end time.
fn run(group: &mut DeviceGroup, mut now_ns: u64, server: &mut Server<'_>) -> u64 {
    let mut out = Outbox::default();
    while !group.is_done(now_ns) {
        group.turn(now_ns, &mut out);
        let next_at_ns = group.next_at();
        let was_idle = out.is_empty();
        now_ns += MS;
        while !out.is_empty() {
            let sent = std::mem::take(&mut out);
            for (member, bytes) in sent.datagrams() {
                if let Some(answer) = server(&Message::decode(bytes).unwrap()) {
                    group.handle_datagram(member, &answer.encode(), now_ns, &mut out);
                }
            }
        }
        if was_idle {
            now_ns = next_at_ns.unwrap_or(now_ns).max(now_ns);
        }
    }
    now_ns
}

/// A server that accepts every request.
fn kind(request: &Message) -> Option<Message> {
    let respond = |code| Message::response_to(request, code, request.message_id);
    let is_update = request.uri_path().count() == 2 || request.uri_path().eq(["dp"]);
    let endpoint = request.uri_query().find_map(|it| it.strip_prefix("ep="));
    match endpoint {
        Some(endpoint) => Some(respond(Code::CREATED).with_location_path(["rd", endpoint])),
        None => is_update.then(|| respond(Code::CHANGED)),
    }
}

fn registered(count: u32, loss_percent: u8) -> (DeviceGroup, u64) {
    let mut group = group(count, loss_percent);
    group.begin(registering(ArrivalPattern::Window(16)), 0, u64::MAX);
    let now_ns = run(&mut group, 0, &mut kind);
    (group, now_ns)
}

#[test]
fn every_device_registers_once_under_its_own_name() {
    let mut names = Vec::new();
    let mut group = group(50, 0);
    group.begin(registering(ArrivalPattern::Window(8)), 0, u64::MAX);
    run(&mut group, 0, &mut |request| {
        let mut queries = request.uri_query();
        names.extend(queries.find_map(|it| it.strip_prefix("ep=").map(str::to_owned)));
        kind(request)
    });
    let expected: Vec<String> = (100..150).map(|number| format!("meter-{number}")).collect();
    assert_eq!(names, expected);
    assert_eq!(group.registered(), 50);
    let tally = group.take_tally();
    assert_eq!((tally.begun, tally.answered, tally.failed()), (50, 50, 0));
    assert_eq!(tally.latencies.count(), 50);
}

#[test]
fn devices_update_in_turn_and_each_update_is_a_new_message() {
    let (mut group, now_ns) = registered(3, 0);
    let until_ns = now_ns + 4 * MS;
    group.begin(
        updating(ArrivalPattern::Window(2), now_ns, until_ns),
        now_ns,
        until_ns,
    );
    let mut received = Vec::new();
    run(&mut group, now_ns, &mut |request| {
        let who = request.uri_path().last().unwrap().to_owned();
        received.push((who, request.message_id));
        kind(request)
    });
    let who: Vec<&str> = received.iter().map(|(who, _)| who.as_str()).collect();
    let round = ["meter-100", "meter-101", "meter-102"];
    let expected: Vec<&str> = round.iter().copied().cycle().take(8).collect();
    assert_eq!(who, expected);
    received.sort();
    received.dedup();
    assert_eq!(received.len(), 8);
}

#[test]
fn lost_datagrams_are_retransmitted_and_nothing_fails() {
    let (mut group, now_ns) = registered(200, 10);
    assert_eq!(group.registered(), 200);
    let tally = group.take_tally();
    assert_eq!((tally.answered, tally.failed()), (200, 0));
    assert!(tally.retransmissions > 20 && tally.dropped >= tally.retransmissions);
    let until_ns = now_ns + S;
    group.begin(
        updating(ArrivalPattern::Rate(100), now_ns, until_ns),
        now_ns,
        until_ns,
    );
    run(&mut group, now_ns, &mut kind);
    let tally = group.take_tally();
    assert_eq!((tally.begun, tally.answered, tally.failed()), (100, 100, 0));
    assert!(
        tally.in_time < 100,
        "what was lost is answered after the end"
    );
    assert!(
        tally.latencies.max_ns() > 2 * S,
        "and counts from when it was due"
    );
}

#[test]
fn a_silent_server_gets_each_request_five_times() {
    let mut group = group(10, 0);
    group.begin(registering(ArrivalPattern::Window(4)), 0, u64::MAX);
    let mut copies = 0;
    run(&mut group, 0, &mut |_| {
        copies += 1;
        None
    });
    let tally = group.take_tally();
    assert_eq!(copies, 50);
    assert_eq!(tally.failures, [(LoadFailure::Timeout, 10)].into());
    assert_eq!((tally.begun, tally.retransmissions), (10, 40));
    assert_eq!(group.registered(), 0);
}

#[test]
fn a_stall_of_the_server_counts_for_every_due_request() {
    let (mut group, now_ns) = registered(10, 0);
    let until_ns = now_ns + S;
    group.begin(
        updating(ArrivalPattern::Rate(100), now_ns, until_ns),
        now_ns,
        until_ns,
    );
    let mut out = Outbox::default();
    let mut open = Vec::new();
    for ms in 0..500 {
        group.turn(now_ns + ms * MS, &mut out);
        open.extend(
            out.datagrams()
                .map(|(member, bytes)| (member, bytes.to_vec())),
        );
        out.clear();
    }
    assert_eq!(open.len(), 10, "a device has one request under way");
    let woken_ns = now_ns + 500 * MS;
    for (member, bytes) in open {
        let answer = kind(&Message::decode(&bytes).unwrap()).unwrap();
        group.handle_datagram(member, &answer.encode(), woken_ns, &mut out);
    }
    run(&mut group, woken_ns, &mut kind);
    let tally = group.take_tally();
    assert_eq!((tally.begun, tally.failed()), (100, 0));
    // Half of the requests were due while the server stalled.
    assert!(tally.latencies.percentile_ns(45.0) < 5 * MS);
    assert!(tally.latencies.percentile_ns(60.0) > 40 * MS);
    assert!((39..=41).contains(&tally.late), "{}", tally.late);
    assert!((399 * MS..=401 * MS).contains(&tally.latest_ns));
}

#[test]
fn a_thread_may_sleep_while_every_device_waits_for_its_answer() {
    let (mut group, now_ns) = registered(2, 0);
    let until_ns = now_ns + S;
    group.begin(
        updating(ArrivalPattern::Rate(1_000), now_ns, until_ns),
        now_ns,
        until_ns,
    );
    let mut out = Outbox::default();
    group.turn(now_ns, &mut out);
    assert_eq!(group.next_at(), Some(now_ns + MS));
    group.turn(now_ns + MS, &mut out);
    assert_eq!(out.datagrams().count(), 2);
    let next_at_ns = group.next_at().unwrap();
    assert!(
        next_at_ns >= now_ns + 2 * S,
        "the next repetition, not the next request"
    );
}

#[test]
fn due_requests_that_could_not_leave_are_counted() {
    let (mut group, now_ns) = registered(2, 0);
    let until_ns = now_ns + S;
    group.begin(
        updating(ArrivalPattern::Rate(10), now_ns, until_ns),
        now_ns,
        until_ns,
    );
    run(&mut group, now_ns, &mut |_| None);
    let tally = group.take_tally();
    let expected = [(LoadFailure::Timeout, 2), (LoadFailure::Unsent, 8)];
    assert_eq!(tally.failures, expected.into());
}

#[test]
fn failures_are_counted_by_kind() {
    let refuse = |code| move |it: &Message| Some(Message::response_to(it, code, it.message_id));
    let (not_found, busy) = (refuse(Code::NOT_FOUND), refuse(Code::SERVICE_UNAVAILABLE));
    let no_location = refuse(Code::CREATED);
    let reset = |it: &Message| Some(Message::reset(it.message_id));
    let other_token = |it: &Message| {
        let mut answer = Message::response_to(it, Code::CREATED, it.message_id);
        answer.token = datagram::token(!it.message_id.0);
        Some(answer)
    };
    let cases: [(&mut Server<'_>, LoadFailure); 5] = [
        (&mut { not_found }, LoadFailure::Refused(Code::NOT_FOUND)),
        (
            &mut { busy },
            LoadFailure::Refused(Code::SERVICE_UNAVAILABLE),
        ),
        (&mut { no_location }, LoadFailure::Unexpected),
        (&mut { reset }, LoadFailure::Reset),
        (&mut { other_token }, LoadFailure::Unexpected),
    ];
    for (server, failure) in cases {
        let mut group = group(3, 0);
        group.begin(registering(ArrivalPattern::Window(4)), 0, u64::MAX);
        run(&mut group, 0, server);
        assert_eq!(group.take_tally().failures, [(failure, 3)].into());
    }
}

#[test]
fn noise_is_counted_and_changes_nothing() {
    let (mut group, now_ns) = registered(2, 0);
    group.begin(LoadTask::Listen, now_ns, u64::MAX);
    let mut out = Outbox::default();
    for bytes in [&[][..], &[0x40], &[0xFF; 9]] {
        group.handle_datagram(0, bytes, now_ns, &mut out);
    }
    let late = Message::acknowledgement(MessageId(1));
    group.handle_datagram(1, &late.encode(), now_ns, &mut out);
    group.handle_datagram(1, &[0x62, 0x44, 0, 1, 0, 1], now_ns, &mut out);
    group.handle_datagram(99, &late.encode(), now_ns, &mut out);
    let tally = group.take_tally();
    assert_eq!(tally.failures, [(LoadFailure::Malformed, 3)].into());
    assert_eq!((tally.stray, tally.answered), (3, 0));
    assert!(out.is_empty());
}

#[test]
fn a_separate_response_ends_the_request_and_is_acknowledged() {
    let mut group = group(1, 0);
    group.begin(registering(ArrivalPattern::Window(1)), 0, u64::MAX);
    let mut out = Outbox::default();
    group.turn(0, &mut out);
    let (_, bytes) = out.datagrams().next().unwrap();
    let request = Message::decode(bytes).unwrap();
    out.clear();
    let empty = Message::acknowledgement(request.message_id);
    group.handle_datagram(0, &empty.encode(), MS, &mut out);
    group.turn(60 * S, &mut out);
    assert!(out.is_empty(), "what has arrived is not sent again");
    let id = MessageId(0x7777);
    let response = Message::separate(MessageKind::Confirmable, Code::CREATED, id, request.token);
    let response = response.with_location_path(["rd", "x"]).encode();
    for time in 0..2 {
        group.handle_datagram(0, &response, 60 * S, &mut out);
        let replies: Vec<Message> = out
            .datagrams()
            .map(|(_, bytes)| Message::decode(bytes).unwrap())
            .collect();
        out.clear();
        let expected = match time {
            0 => Message::acknowledgement(id),
            _ => Message::reset(id),
        };
        assert_eq!(replies, [expected]);
    }
    assert_eq!(group.registered(), 1);
    assert!(group.is_done(60 * S));
}

#[test]
fn a_device_answers_requests_of_the_server() {
    let (mut group, now_ns) = registered(2, 0);
    group.begin(LoadTask::Listen, now_ns, u64::MAX);
    let mut out = Outbox::default();
    let (id, token) = (MessageId(9), datagram::token(9));
    let read = Message::request(MessageKind::Confirmable, Code::GET, id, token);
    let read = read.with_uri_path(["3", "0", "0"]).encode();
    group.handle_datagram(1, &read, now_ns, &mut out);
    assert_eq!(out.answering(), [1]);
    let (member, bytes) = out.datagrams().next().unwrap();
    let answer = Message::decode(bytes).unwrap();
    assert_eq!(
        (member, answer.code, answer.token),
        (1, Code::CONTENT, token)
    );
    assert!(!answer.payload.is_empty());
    assert_eq!(group.take_tally().asked, 1);
}

#[test]
fn a_wake_order_waits_while_a_request_is_in_progress() {
    let (mut group, now_ns) = registered(2, 0);
    group.begin(LoadTask::Listen, now_ns, u64::MAX);
    let mut out = Outbox::default();
    assert!(group.wake(1, now_ns, &mut out));
    assert!(!group.wake(1, now_ns, &mut out));
    assert!(group.wake(2, now_ns, &mut out));
    let sent: Vec<u32> = out.datagrams().map(|(member, _)| member).collect();
    assert_eq!(sent, [1]);
    let (mut strangers, now_ns) = (self::group(1, 0), 0);
    assert!(strangers.wake(0, now_ns, &mut out));
    assert_eq!(out.datagrams().count(), 1);
}

#[test]
fn each_send_has_a_value_of_its_own_and_is_recorded_once_acknowledged() {
    let (mut group, now_ns) = registered(30, 10);
    let until_ns = now_ns + 100 * MS;
    let share = ArrivalShare { index: 0, of: 1 };
    let rate = ArrivalSchedule::begin(ArrivalPattern::Rate(200), share, now_ns, until_ns);
    let task = LoadTask::Repeat(RequestMix::SENDS, rate);
    group.begin(task, now_ns, until_ns);
    let sends = group.behaviour.sends;
    let mut sent = std::collections::BTreeSet::new();
    run(&mut group, now_ns, &mut |request| {
        let value = request.payload.last_chunk::<8>().copied().unwrap();
        // A Send that is repeated has the same value.
        sent.insert(sends.number(f64::from_be_bytes(value)).unwrap());
        kind(request)
    });
    let tally = group.take_tally();
    assert!(tally.retransmissions > 0);
    let mut acknowledged: Vec<u32> = tally.acknowledged.iter().map(|it| it.number).collect();
    acknowledged.sort_unstable();
    assert_eq!(acknowledged.len(), 20);
    assert_eq!(Vec::from_iter(sent), acknowledged);
    assert!(acknowledged.windows(2).all(|two| two[0] < two[1]));
    assert!(
        tally
            .acknowledged
            .iter()
            .all(|it| (100..130).contains(&it.device))
    );
    assert_eq!(tally.latencies_by_request[&LoadRequest::Send].count(), 20);
}

#[test]
fn requests_of_a_mix_are_told_apart() {
    let (mut group, now_ns) = registered(50, 0);
    let until_ns = now_ns + S;
    let share = ArrivalShare { index: 0, of: 1 };
    let rate = ArrivalSchedule::begin(ArrivalPattern::Rate(1_000), share, now_ns, until_ns);
    let mix = RequestMix {
        register: 1,
        update: 1,
        send: 2,
    };
    group.begin(LoadTask::Repeat(mix, rate), now_ns, until_ns);
    run(&mut group, now_ns, &mut kind);
    let tally = group.take_tally();
    assert_eq!((tally.answered, tally.failed()), (1_000, 0));
    let count = |request| tally.latencies_by_request[&request].count();
    for (request, expected) in [
        (LoadRequest::Register, 250),
        (LoadRequest::Update, 250),
        (LoadRequest::Send, 500),
    ] {
        assert!(
            count(request).abs_diff(expected) < 60,
            "{request}: {}",
            count(request)
        );
    }
    assert_eq!(group.registered(), 50);
}

#[test]
fn devices_return_until_the_server_takes_them() {
    let (mut group, now_ns) = registered(20, 0);
    let share = ArrivalShare { index: 0, of: 1 };
    let all = ArrivalSchedule::begin(ArrivalPattern::AtOnce, share, now_ns, u64::MAX);
    group.begin(LoadTask::Return(all), now_ns, u64::MAX);
    let mut requests = 0;
    let ended_at_ns = run(&mut group, now_ns, &mut |request| {
        requests += 1;
        let busy = Message::response_to(request, Code::SERVICE_UNAVAILABLE, request.message_id);
        if requests > 30 {
            kind(request)
        } else {
            Some(busy)
        }
    });
    let tally = group.take_tally();
    let busy = LoadFailure::Refused(Code::SERVICE_UNAVAILABLE);
    assert_eq!(tally.failures, [(busy, 30)].into());
    assert_eq!((tally.begun, tally.answered), (50, 20));
    let took_ns = ended_at_ns - now_ns;
    assert!(
        (180 * S..181 * S).contains(&took_ns),
        "two retries: {took_ns}"
    );
    assert!(tally.latencies.max_ns() > 179 * S, "since the outage");
}

#[test]
fn a_task_that_ends_early_waits_for_what_is_in_progress() {
    let (mut group, now_ns) = registered(20, 0);
    let until_ns = now_ns + 100 * S;
    group.begin(
        updating(ArrivalPattern::Window(4), now_ns, until_ns),
        now_ns,
        until_ns,
    );
    let mut out = Outbox::default();
    group.turn(now_ns, &mut out);
    group.end(now_ns + MS);
    assert!(!group.is_done(now_ns + MS));
    for (member, bytes) in std::mem::take(&mut out).datagrams() {
        let answer = kind(&Message::decode(bytes).unwrap()).unwrap();
        group.handle_datagram(member, &answer.encode(), now_ns + 2 * MS, &mut out);
    }
    group.turn(now_ns + 2 * MS, &mut out);
    assert!(out.is_empty() && group.is_done(now_ns + 2 * MS));
    let tally = group.take_tally();
    assert_eq!((tally.begun, tally.answered, tally.in_time), (4, 4, 0));
}

#[test]
fn a_device_in_queue_mode_hears_the_server_only_while_it_is_awake() {
    let behaviour = DeviceBehaviour {
        sleep: Some(SleepTimes {
            asleep_ns: 60 * S,
            awake_ns: 5 * S,
        }),
        ..group(1, 0).behaviour
    };
    let mut group = gather(behaviour, 1);
    group.begin(registering(ArrivalPattern::Window(1)), 0, u64::MAX);
    let mut queries = Vec::new();
    let now_ns = run(&mut group, 0, &mut |request| {
        queries.extend(request.uri_query().map(str::to_owned));
        kind(request)
    });
    assert_eq!(queries.last().map(String::as_str), Some("Q"));
    group.begin(LoadTask::Listen, now_ns, u64::MAX);
    let read = Message::request(
        MessageKind::Confirmable,
        Code::GET,
        MessageId(9),
        datagram::token(9),
    );
    let read = read.with_uri_path(["3", "0", "0"]).encode();
    let mut out = Outbox::default();
    group.handle_datagram(0, &read, now_ns + S, &mut out);
    assert_eq!(std::mem::take(&mut out).answering(), [0]);
    group.turn(now_ns + 6 * S, &mut out);
    group.handle_datagram(0, &read, now_ns + 7 * S, &mut out);
    assert!(out.is_empty(), "it sleeps since 6 s");
    let wakes_at_ns = group.next_at().unwrap();
    assert!((36 * S..=96 * S).contains(&(wakes_at_ns - now_ns)));
    group.turn(wakes_at_ns, &mut out);
    assert_eq!(out.datagrams().count(), 1, "an update");
    group.handle_datagram(0, &read, wakes_at_ns + S, &mut out);
    assert_eq!(out.answering(), [0]);
    assert_eq!((group.tally().asked, group.tally().unheard), (2, 1));
}

#[test]
fn a_device_needs_few_bytes() {
    assert!(
        size_of::<GroupMember>() <= 16,
        "{}",
        size_of::<GroupMember>()
    );
    assert!(size_of::<Option<LoadExchange>>() <= 64);
}

#[test]
fn a_device_forgets_its_session_when_a_request_is_not_answered() {
    let mut group = group(1, 0);
    group.begin(registering(ArrivalPattern::Window(1)), 0, u64::MAX);
    let (mut now_ns, mut forgetting) = (0, Vec::new());
    while !group.is_done(now_ns) {
        let mut out = Outbox::default();
        group.turn(now_ns, &mut out);
        forgetting.extend_from_slice(out.forgetting());
        now_ns = group.next_at().unwrap_or(now_ns);
    }
    assert_eq!(forgetting, [0]);
    let failures = group.take_tally().failures;
    assert_eq!(failures, [(LoadFailure::Timeout, 1)].into());
}

#[test]
fn a_session_for_one_request_is_forgotten_before_the_next() {
    let behaviour = DeviceBehaviour {
        sessions: SessionUse::OneRequest,
        ..group(2, 0).behaviour
    };
    let mut group = gather(behaviour, 2);
    let mut out = Outbox::default();
    group.begin(registering(ArrivalPattern::Window(2)), 0, u64::MAX);
    group.turn(0, &mut out);
    let sent: Vec<u32> = out.datagrams().map(|(member, _)| member).collect();
    assert_eq!(
        (sent.as_slice(), out.forgetting()),
        (&[0, 1][..], &[0, 1][..])
    );
    // A retransmission belongs to the same request.
    out.clear();
    group.turn(4 * S, &mut out);
    assert_eq!(out.datagrams().count(), 2);
    assert!(out.forgetting().is_empty());
}

#[test]
fn a_failed_handshake_fails_the_request_that_waits_for_it() {
    let mut group = group(2, 0);
    group.begin(registering(ArrivalPattern::Window(1)), 0, u64::MAX);
    group.turn(0, &mut Outbox::default());
    for member in 0..2 {
        group.handle_failed_handshake(member, MS);
    }
    let tally = group.take_tally();
    assert_eq!(tally.begun, 1);
    assert_eq!(tally.failures, [(LoadFailure::Handshake, 1)].into());
}
