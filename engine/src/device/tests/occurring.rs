//! What is counted: each message once by its kind, each exchange from its beginning to its end.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::vocabulary::{BATTERY, DeviceFixture, HOME, S, read, write};
use crate::action::{Operation, Protocol, RequestKind, Status};
use crate::device::activity::{DeviceActivity, InFlight, ListenWindow};
use crate::ids::ActionId;
use crate::step_event::{
    ActionRef, ExchangeOutcome, ExchangePurpose, NotificationOutcome, StepEventKind, UplinkKind,
};

#[test]
fn each_message_is_counted_by_its_kind() {
    let mut fixture = DeviceFixture::observed();
    let cases = [
        (fixture.updating(&[], ""), UplinkKind::Update),
        (
            fixture.request(Code::GET, &["time"]),
            UplinkKind::Unsupported,
        ),
        (Message::ping(MessageId(9_001)), UplinkKind::Ping),
        (
            fixture.notification(MessageKind::Confirmable, 11, "86"),
            UplinkKind::Notification,
        ),
        (response(9_002), UplinkKind::Unsolicited),
        (
            Message::acknowledgement(MessageId(9_003)),
            UplinkKind::Unsolicited,
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(fixture.kind_of(&message), expected, "{message:?}");
    }
    let registration = fixture.registration(&["lwm2m=1.1", "lt=60"], "</3/0>");
    assert_eq!(fixture.kind_of(&registration), UplinkKind::Register);
    assert_eq!(fixture.kind_of(&registration), UplinkKind::Repeated);
    let deregistration = fixture.deregistering();
    assert_eq!(fixture.kind_of(&deregistration), UplinkKind::Deregister);
}

#[test]
fn an_answer_is_counted_as_one_and_its_repetition_is_not() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read(BATTERY));
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_payload("87");
    assert_eq!(fixture.kind_of(&answer), UplinkKind::Answer);
    assert_eq!(fixture.kind_of(&answer), UplinkKind::Repeated);
}

#[test]
fn a_request_is_counted_from_its_creation_to_its_end() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read(BATTERY));
    let action_ref = action_ref(id, Operation::Read);
    let begun = [
        StepEventKind::Created(action_ref),
        StepEventKind::Begun(ExchangePurpose::Action),
    ];
    assert_eq!(fixture.step_events(), begun);
    fixture.next_deadline();
    assert_eq!(fixture.step_events(), [StepEventKind::Repeated]);
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.receives(HOME, &acknowledgement);
    assert_eq!(fixture.step_events(), [StepEventKind::Acknowledged]);
    fixture.answer(Code::CONTENT, "87");
    let ended = [
        StepEventKind::Ended(ExchangeOutcome::Success),
        StepEventKind::Concluded(action_ref, Status::Succeeded),
    ];
    assert_eq!(fixture.step_events(), ended);
}

#[test]
fn what_happens_to_a_request_names_the_call_that_made_it() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read(BATTERY));
    let trace = Some(fixture.saved(id).trace);
    assert_eq!(fixture.traces(), [trace, trace]);
    assert_eq!(fixture.device().trace_in_flight(), trace);
    fixture.next_deadline();
    assert_eq!(fixture.traces(), [trace]);
    fixture.answer(Code::NOT_FOUND, "");
    assert_eq!(fixture.traces(), [trace, trace]);
    assert_eq!(fixture.device().trace_in_flight(), None);
}

#[test]
fn each_way_an_exchange_ends_is_reported() {
    let answers = [
        (Code::CONTENT, ExchangeOutcome::Success),
        (Code::NOT_FOUND, ExchangeOutcome::ClientError),
        (Code::INTERNAL_SERVER_ERROR, ExchangeOutcome::ServerError),
    ];
    for (code, ending) in answers {
        let mut fixture = requested_once();
        fixture.answer(code, "87");
        assert_eq!(
            fixture.step_events()[0],
            StepEventKind::Ended(ending),
            "{code}"
        );
    }
    let mut fixture = requested_once();
    let reset = Message::reset(fixture.last_request().message_id);
    fixture.receives(HOME, &reset);
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::Reset)
    );

    let mut fixture = requested_once();
    while fixture.device().activity().exchange == InFlight::Yes {
        fixture.next_deadline();
    }
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::NotAcknowledged)
    );

    let mut fixture = requested_once();
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.receives(HOME, &acknowledgement);
    fixture.next_deadline();
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::NotAnswered)
    );

    let mut fixture = requested_once();
    fixture.deregister();
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::DeviceGone)
    );

    let mut fixture = requested_once();
    fixture.retire();
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::DeviceGone)
    );
}

#[test]
fn requests_end_with_their_device() {
    let mut fixture = DeviceFixture::registered();
    let ids = [
        fixture.ask(read(BATTERY)),
        fixture.ask(write(BATTERY, "1").when_active()),
    ];
    let done = fixture.ask(read(BATTERY).when_active());
    fixture.cancel(done).0.unwrap();
    fixture.retire();
    let ended = [
        StepEventKind::Ended(ExchangeOutcome::DeviceGone),
        StepEventKind::Concluded(action_ref(ids[1], Operation::Write), Status::Cancelled),
        StepEventKind::Concluded(action_ref(ids[0], Operation::Read), Status::Failed),
    ];
    assert_eq!(fixture.step_events(), ended);
}

#[test]
fn a_request_that_never_leaves_has_no_exchange() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(write("/3/0/13", "noon"));
    let action_ref = action_ref(id, Operation::Write);
    let failed = [
        StepEventKind::Created(action_ref),
        StepEventKind::Concluded(action_ref, Status::Failed),
    ];
    assert_eq!(fixture.step_events(), failed);
    let id = fixture.ask(read(BATTERY).when_active());
    fixture.cancel(id).0.unwrap();
    let action_ref = self::action_ref(id, Operation::Read);
    let cancelled = [StepEventKind::Concluded(action_ref, Status::Cancelled)];
    assert_eq!(fixture.step_events(), cancelled);
}

#[test]
fn a_notification_is_counted_by_its_outcome() {
    let mut fixture = DeviceFixture::observed();
    fixture.notify(11, "86");
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Notified(NotificationOutcome::Published)]
    );
    fixture.notify(9, "86");
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Notified(NotificationOutcome::Stale)]
    );
    fixture.notify(12, "much");
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Notified(NotificationOutcome::Unusable)]
    );
    let nothing = fixture
        .notification(MessageKind::Confirmable, 13, "")
        .with_content_format(ContentFormat::LWM2M_TLV);
    fixture.receives(HOME, &nothing);
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Notified(NotificationOutcome::Empty)]
    );
    let end = fixture.notification(MessageKind::Confirmable, 14, "86");
    let end = Message::separate(end.kind, Code::NOT_FOUND, end.message_id, end.token);
    fixture.receives(HOME, &end);
    let lost = [
        StepEventKind::ObservationLost,
        StepEventKind::Notified(NotificationOutcome::Unusable),
    ];
    assert_eq!(fixture.step_events(), lost);
}

#[test]
fn renewing_an_observation_is_an_exchange_of_its_own() {
    let mut fixture = DeviceFixture::observed();
    fixture.register();
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Begun(ExchangePurpose::Observation)]
    );
    assert_eq!(fixture.traces(), [None]);
}

#[test]
fn the_activity_of_a_device_follows_its_state() {
    let mut fixture = DeviceFixture::new();
    let nothing = DeviceActivity {
        listens: ListenWindow::Unregistered,
        scheduled: 0,
        in_progress: 0,
        exchange: InFlight::No,
    };
    assert_eq!(fixture.device().activity(), nothing);
    fixture.ask(read(BATTERY).when_active());
    let waiting = DeviceActivity {
        scheduled: 1,
        ..nothing
    };
    assert_eq!(fixture.device().activity(), waiting);
    fixture.register();
    let awake = DeviceActivity {
        listens: ListenWindow::Always,
        in_progress: 1,
        exchange: InFlight::Yes,
        ..nothing
    };
    assert_eq!(fixture.device().activity(), awake);
    let mut sleeper = DeviceFixture::registered_for_queue_mode();
    sleeper.at(S).update();
    let listens = sleeper.device().activity().listens;
    let ListenWindow::Until(until) = listens else {
        panic!("{listens:?}");
    };
    assert_eq!(sleeper.since_start(until), 94 * S);
}

fn requested_once() -> DeviceFixture {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read(BATTERY));
    fixture
}

fn action_ref(action: ActionId, operation: Operation) -> ActionRef {
    ActionRef {
        action,
        protocol: Protocol::Lwm2m,
        task: RequestKind::Operation(operation),
    }
}

fn response(id: u16) -> Message {
    let token = Token::new(&[9, 9]).unwrap();
    Message::separate(
        MessageKind::Confirmable,
        Code::CONTENT,
        MessageId(id),
        token,
    )
}
