//! Several objects are read in one request (LwM2M Core 1.2 section 6.3.8) if the device seems to
//! support that, and one by one if it turns out that it does not.

use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};

use super::super::vocabulary::{
    DeviceFixture, HOME, Lines, MINUTE, S, all, created, moved, read, recorded, reported, sent,
    unread, updated,
};
use crate::action::Status::{InProgress, Scheduled};
use crate::setting::SettingState;

/// The objects of a device that announces SenML JSON.
const JSON: &str = "</>;rt=\"oma.lwm2m\";ct=110,</1/0>,</3/0>,</6/0>,</7/0>";

/// The paths of a composite read.
const PATHS: &str = r#"[{"n":"/6"},{"n":"/7"}]"#;

#[test]
fn a_device_that_seems_to_support_it_is_read_in_one_request() {
    let mut fixture = composite_requested();
    let payload = r#"[{"bn":"/6/0/","n":"5","v":1},{"bn":"/7/0/","n":"2","v":5},{"n":"3","v":6}]"#;
    let expected = reported("/6/0/5=1970-01-01T00:00:01Z /7/0/2=5 /7/0/3=6");
    assert_eq!(fixture.answer_composite(payload), expected);
    assert!(fixture.device().busy.is_none());
    let expected = all([updated(102), composite_read("m2")]);
    assert_eq!(fixture.at(MINUTE).update(), expected);
}

#[test]
fn values_of_objects_not_requested_are_dropped() {
    let mut fixture = composite_requested();
    let payload = r#"[{"n":"/1/0/1","v":60},{"n":"/7/0/2","v":5},{"n":"/3303/0/5700","v":1}]"#;
    assert_eq!(fixture.answer_composite(payload), reported("/7/0/2=5"));
    fixture.at(MINUTE).update();
    assert_eq!(
        fixture.answer_composite(r#"[{"n":"/1/0/1","v":60}]"#),
        Lines::new()
    );
    fixture.at(2 * MINUTE).update();
    assert_eq!(fixture.answer_composite("[]"), Lines::new());
    assert!(fixture.device().busy.is_none());
}

#[test]
fn values_of_each_time_are_published_separately_oldest_first() {
    let mut fixture = composite_requested();
    let payload =
        r#"[{"n":"/7/0/2","v":5},{"n":"/7/0/2","v":4,"t":-60},{"n":"/1/0/1","v":1,"t":-5}]"#;
    let expected = all([reported("/7/0/2=4"), reported("/7/0/2=5")]);
    let effects = fixture.answer_composite(payload);
    assert_eq!(effects.len(), expected.len(), "{effects:?}");
    assert!(effects[0].contains("/7/0/2=4"), "{effects:?}");
    assert_eq!(effects[1..], expected[1..]);
}

#[test]
fn a_device_that_refuses_a_composite_read_is_read_one_by_one_until_it_registers_again() {
    let unlike: [fn(&mut DeviceFixture) -> Message; 10] = [
        |fixture| fixture.piggybacked(Code::BAD_REQUEST),
        |fixture| fixture.piggybacked(Code::UNAUTHORIZED),
        |fixture| fixture.piggybacked(Code::BAD_OPTION),
        |fixture| fixture.piggybacked(Code::NOT_FOUND),
        |fixture| fixture.piggybacked(Code::METHOD_NOT_ALLOWED),
        |fixture| fixture.piggybacked(Code::NOT_IMPLEMENTED),
        |fixture| fixture.piggybacked(Code::SERVICE_UNAVAILABLE),
        |fixture| Message::reset(fixture.last_request().message_id),
        |fixture| fixture.in_json("warm"),
        |fixture| fixture.in_json("[]").with_block2(Block::from_value(0x0e)),
    ];
    for refusal in unlike {
        let mut fixture = composite_requested();
        let refusal = refusal(&mut fixture);
        let effects = fixture.receives(HOME, &refusal);
        assert_eq!(effects, reads_json("/6", "m2"), "{refusal:?}");
        assert_eq!(fixture.requested_objects(effects), ["/6", "/7"]);
        let expected = all([updated(102), reads_json("/6", "m4")]);
        assert_eq!(fixture.at(MINUTE).update(), expected, "it is known by then");
        let effects = fixture.at(2 * MINUTE).offer(JSON);
        assert!(effects.ends_with(&composite_read("m5")), "{effects:?}");
    }
}

#[test]
fn after_every_format_is_refused_for_several_objects_they_are_read_one_by_one() {
    for code in [Code::NOT_ACCEPTABLE, Code::UNSUPPORTED_CONTENT_FORMAT] {
        let mut fixture = composite_requested();
        let mut effects = fixture.answer(code, "");
        let mut requests = 1;
        while effects.iter().any(|line| line.contains("FETCH")) {
            effects = fixture.answer(code, "");
            requests += 1;
        }
        assert!(requests <= 2, "{requests} requests");
        assert_eq!(fixture.requested_objects(effects), ["/6", "/7"]);
    }
}

#[test]
fn a_device_that_acknowledges_a_composite_read_without_an_answer_is_read_one_by_one() {
    let mut fixture = acknowledged();
    assert_eq!(fixture.next_deadline(), Lines::new(), "nothing else waits");
    let expected = all([unanswered(S), reads_json("/6", "m2")]);
    assert_eq!(fixture.next_deadline(), expected);
    assert_eq!(fixture.since_start_now(), 94 * S);
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), reads_json("/7", "m3"));
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), Lines::new());
    let expected = all([updated(102), reads_json("/6", "m4")]);
    assert_eq!(fixture.update(), expected, "that costs no update its time");
}

#[test]
fn an_acknowledged_read_without_an_answer_gives_way_after_five_seconds() {
    let mut fixture = acknowledged();
    let (_, effects) = fixture.at(2 * S).submit(read("/3/0/9"));
    assert_eq!(effects, created("#1", Scheduled, "0/1"));
    let given_way = all([
        unanswered(S),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m2"),
    ]);
    assert_eq!(fixture.next_deadline(), given_way);
    assert_eq!(fixture.since_start_now(), 6 * S);

    let mut fixture = acknowledged();
    fixture.next_deadline();
    let (_, effects) = fixture.at(7 * S).submit(read("/3/0/9"));
    let request = sent("CON GET /3/0/9 accept 0 m2");
    assert!(effects.ends_with(&request), "at once: {effects:?}");
    let effects = fixture.answer(Code::NOT_FOUND, "");
    assert!(
        effects.ends_with(&reads_json("/6", "m3")),
        "the round goes on: {effects:?}"
    );
}

#[test]
fn an_acknowledged_read_gives_way_to_an_observation_to_renew() {
    let mut fixture = DeviceFixture::observed();
    fixture.switch_reporting(SettingState::Enabled);
    fixture.offer(JSON);
    fixture.agree(11, "88");
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.at(S).receives(HOME, &acknowledgement);
    let moved = fixture.updating(&[], "");
    fixture.at(2 * S).receives("10.0.0.1:5684", &moved);
    let effects = fixture.next_deadline();
    assert_eq!(fixture.since_start_now(), 6 * S);
    let again = effects.last().unwrap();
    assert!(again.contains("GET /3/0/9 observe 0"), "{effects:?}");
}

#[test]
fn a_request_of_a_caller_does_not_give_way() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9"));
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.at(S).receives(HOME, &acknowledgement);
    fixture.ask(read("/3/0/0"));
    assert_eq!(fixture.deadline(), Some(94 * S));
}

#[test]
fn an_unanswered_composite_read_is_remembered_until_the_device_announces_something_else() {
    let mut fixture = acknowledged();
    fixture.next_deadline();
    fixture.next_deadline();
    for (round, is_restarted) in [false, true].into_iter().enumerate() {
        if is_restarted {
            fixture.restart();
        }
        let at = i64::try_from(round + 2).unwrap() * 2 * MINUTE;
        fixture.at(at).deregister();
        let effects = fixture.offer(JSON);
        assert!(
            effects.last().unwrap().contains("CON GET /6"),
            "{effects:?}"
        );
    }
    let effects = fixture.offer(&JSON.replace("ct=110", "ct=\"110 112\""));
    assert!(effects.last().unwrap().contains("CON FETCH"), "{effects:?}");
    let effects = fixture.register_with(&["lwm2m=1.2", "lt=86400", "b=U"], JSON);
    assert!(effects.last().unwrap().contains("CON FETCH"), "{effects:?}");
}

#[test]
fn a_device_that_does_not_acknowledge_a_composite_read_is_read_one_by_one_at_its_next_update() {
    let mut fixture = composite_requested();
    while fixture.deadline() < Some(62 * S) {
        assert_eq!(fixture.next_deadline(), composite_read("m1"));
    }
    assert_eq!(fixture.next_deadline(), Lines::new());
    assert!(fixture.device().busy.is_none());
    let expected = all([updated(102), reads_json("/6", "m2")]);
    assert_eq!(fixture.at(10 * MINUTE).update(), expected);
}

#[test]
fn a_refused_object_is_in_no_further_request() {
    let mut fixture = composite_requested();
    fixture.answer(Code::BAD_REQUEST, "");
    let effects = fixture.answer(Code::METHOD_NOT_ALLOWED, "");
    assert_eq!(fixture.requested_objects(effects), ["/7"]);
    let effects = fixture.at(MINUTE).update();
    assert_eq!(fixture.requested_objects(effects), ["/7"]);
}

#[test]
fn a_single_object_is_read_without_a_composite_read() {
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer("</>;rt=\"oma.lwm2m\";ct=110,</1/0>,</7/0>");
    assert!(effects.ends_with(&reads_json("/7", "m1")), "{effects:?}");
}

#[test]
fn a_composite_read_needs_announced_formats_and_lwm2m_1_1() {
    let objects = "</1/0>,</6/0>,</7/0>";
    let first = format!("</>;rt=\"oma.lwm2m\";ct=110,{objects}");
    let tlv = format!("</>;rt=\"oma.lwm2m\";ct=11542,{objects}");
    for (release, objects) in [("1.1", objects), ("1.0", &first), ("1.1", &tlv)] {
        let mut fixture = DeviceFixture::reporting();
        let release = format!("lwm2m={release}");
        let effects = fixture.register_with(&[&release, "lt=86400", "b=U"], objects);
        let last = effects.last().unwrap();
        assert!(last.contains("CON GET /6"), "{release} {objects}: {last}");
    }
}

#[test]
fn the_objects_are_found_under_the_root_of_the_device() {
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer("</a>;rt=\"oma.lwm2m\";ct=110,</a/6/0>,</a/7/0>");
    let expected = sent(&format!("CON FETCH /a accept 110 format 110 {PATHS:?} m1"));
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn an_object_that_cannot_be_decoded_is_found_by_reading_one_by_one() {
    let mut fixture = composite_requested();
    fixture.answer_composite("warm");
    let answer = fixture.piggybacked(Code::INTERNAL_SERVER_ERROR);
    let expected = all([
        unread("/6", "the device answered 5.00."),
        reads_json("/7", "m3"),
    ]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn a_separate_answer_to_a_composite_read_is_accepted() {
    let mut fixture = composite_requested();
    let answer = fixture.separate(MessageKind::Confirmable, Code::CONTENT);
    let answer = answer.with_content_format(ContentFormat::SENML_JSON);
    let answer = answer.with_payload(r#"[{"n":"/7/0/2","v":5}]"#);
    let expected = all([reported("/7/0/2=5"), sent("ACK to 102")]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

/// A device that registered, with a composite read of its objects in flight.
fn composite_requested() -> DeviceFixture {
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer(JSON);
    assert!(effects.ends_with(&composite_read("m1")), "{effects:?}");
    fixture
}

/// The same, one second after the start acknowledged by the device.
fn acknowledged() -> DeviceFixture {
    let mut fixture = composite_requested();
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.at(S).receives(HOME, &acknowledgement);
    fixture
}

/// It is saved that the device, seen at this time, leaves composite reads unanswered.
fn unanswered(seen_at_ms: i64) -> Lines {
    let presence = format!("registered until 86400000, seen at {seen_at_ms} from {HOME}");
    recorded(&format!("{presence}, composite unanswered"))
}

fn composite_read(message: &str) -> Lines {
    sent(&format!(
        "CON FETCH  accept 110 format 110 {PATHS:?} {message}"
    ))
}

fn reads_json(path: &str, message: &str) -> Lines {
    sent(&format!("CON GET {path} accept 110 {message}"))
}

impl DeviceFixture {
    fn in_json(&self, payload: &str) -> Message {
        let answer = self.piggybacked(Code::CONTENT);
        let answer = answer.with_content_format(ContentFormat::SENML_JSON);
        answer.with_payload(payload)
    }

    fn answer_composite(&mut self, payload: &str) -> Lines {
        let answer = self.in_json(payload);
        self.receives(HOME, &answer)
    }
}
