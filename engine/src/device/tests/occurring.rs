//! What is counted: each message once for what it was, each exchange from its beginning to its end.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::token::Token;

use super::vocabulary::{BATTERY, Bench, HOME, S, read, write};
use crate::action::{Operation, Protocol, Status, Task};
use crate::device::standing::{InFlight, Listens, Standing};
use crate::ids::ActionId;
use crate::occurrence::{Asked, Ending, Heard, News, Purpose, What};

#[test]
fn each_message_is_taken_for_what_it_is() {
    let mut bench = Bench::observed();
    let cases = [
        (bench.updating(&[], ""), Heard::Update),
        (bench.request(Code::GET, &["time"]), Heard::Unsupported),
        (Message::ping(MessageId(9_001)), Heard::Ping),
        (
            bench.notification(Kind::Confirmable, 11, "86"),
            Heard::Notification,
        ),
        (response(9_002), Heard::Unasked),
        (Message::acknowledgement(MessageId(9_003)), Heard::Unasked),
    ];
    for (message, expected) in cases {
        assert_eq!(bench.takes_for(&message), expected, "{message:?}");
    }
    let registration = bench.registration(&["lwm2m=1.1", "lt=60"], "</3/0>");
    assert_eq!(bench.takes_for(&registration), Heard::Register);
    assert_eq!(bench.takes_for(&registration), Heard::Repeated);
    let farewell = bench.deregistering();
    assert_eq!(bench.takes_for(&farewell), Heard::Deregister);
}

#[test]
fn an_answer_is_one_and_its_repetition_is_not() {
    let mut bench = Bench::registered();
    bench.ask(read(BATTERY));
    let answer = bench
        .separate(Kind::Confirmable, Code::CONTENT)
        .with_payload("87");
    assert_eq!(bench.takes_for(&answer), Heard::Answer);
    assert_eq!(bench.takes_for(&answer), Heard::Repeated);
}

#[test]
fn a_request_is_counted_from_its_creation_to_its_end() {
    let mut bench = Bench::registered();
    let id = bench.ask(read(BATTERY));
    let asked = asked(id, Operation::Read);
    let begun = [What::Created(asked), What::Begun(Purpose::Action)];
    assert_eq!(bench.occurred(), begun);
    bench.next_deadline();
    assert_eq!(bench.occurred(), [What::Repeated]);
    let acknowledgement = Message::acknowledgement(bench.asked().message_id);
    bench.hears(HOME, &acknowledgement);
    assert_eq!(bench.occurred(), [What::Acknowledged]);
    bench.answer(Code::CONTENT, "87");
    let ended = [
        What::Ended(Ending::Success),
        What::Concluded(asked, Status::Succeeded),
    ];
    assert_eq!(bench.occurred(), ended);
}

#[test]
fn what_happens_to_a_request_names_the_call_that_made_it() {
    let mut bench = Bench::registered();
    let id = bench.ask(read(BATTERY));
    let trace = Some(bench.kept(id).trace);
    assert_eq!(bench.traces(), [trace, trace]);
    assert_eq!(bench.device().trace_in_flight(), trace);
    bench.next_deadline();
    assert_eq!(bench.traces(), [trace]);
    bench.answer(Code::NOT_FOUND, "");
    assert_eq!(bench.traces(), [trace, trace]);
    assert_eq!(bench.device().trace_in_flight(), None);
}

#[test]
fn each_way_an_exchange_ends_is_told_from_the_others() {
    let answers = [
        (Code::CONTENT, Ending::Success),
        (Code::NOT_FOUND, Ending::ClientError),
        (Code::INTERNAL_SERVER_ERROR, Ending::ServerError),
    ];
    for (code, ending) in answers {
        let mut bench = asked_once();
        bench.answer(code, "87");
        assert_eq!(bench.occurred()[0], What::Ended(ending), "{code}");
    }
    let mut bench = asked_once();
    let reset = Message::reset(bench.asked().message_id);
    bench.hears(HOME, &reset);
    assert_eq!(bench.occurred()[0], What::Ended(Ending::Reset));

    let mut bench = asked_once();
    while bench.device().standing().exchange == InFlight::Yes {
        bench.next_deadline();
    }
    assert_eq!(bench.occurred()[0], What::Ended(Ending::NotAcknowledged));

    let mut bench = asked_once();
    let acknowledgement = Message::acknowledgement(bench.asked().message_id);
    bench.hears(HOME, &acknowledgement);
    bench.next_deadline();
    assert_eq!(bench.occurred()[0], What::Ended(Ending::NotAnswered));

    let mut bench = asked_once();
    bench.deregister();
    assert_eq!(bench.occurred()[0], What::Ended(Ending::DeviceGone));

    let mut bench = asked_once();
    bench.retire();
    assert_eq!(bench.occurred()[0], What::Ended(Ending::DeviceGone));
}

#[test]
fn what_waits_for_a_device_goes_with_it() {
    let mut bench = Bench::registered();
    let ids = [
        bench.ask(read(BATTERY)),
        bench.ask(write(BATTERY, "1").when_active()),
    ];
    let done = bench.ask(read(BATTERY).when_active());
    bench.cancel(done).0.unwrap();
    bench.retire();
    let removed = [
        What::Ended(Ending::DeviceGone),
        What::Removed(asked(ids[0], Operation::Read)),
        What::Removed(asked(ids[1], Operation::Write)),
    ];
    assert_eq!(bench.occurred(), removed);
}

#[test]
fn a_request_that_never_leaves_has_no_exchange() {
    let mut bench = Bench::registered();
    let id = bench.ask(write("/3/0/13", "noon"));
    let asked = asked(id, Operation::Write);
    let failed = [What::Created(asked), What::Concluded(asked, Status::Failed)];
    assert_eq!(bench.occurred(), failed);
    let id = bench.ask(read(BATTERY).when_active());
    bench.cancel(id).0.unwrap();
    let asked = self::asked(id, Operation::Read);
    let cancelled = [What::Concluded(asked, Status::Cancelled)];
    assert_eq!(bench.occurred(), cancelled);
}

#[test]
fn a_notification_is_counted_for_what_it_is_worth() {
    let mut bench = Bench::observed();
    bench.notify(11, "86");
    assert_eq!(bench.occurred(), [What::Notified(News::Told)]);
    bench.notify(9, "86");
    assert_eq!(bench.occurred(), [What::Notified(News::Stale)]);
    bench.notify(12, "much");
    assert_eq!(bench.occurred(), [What::Notified(News::Unusable)]);
    let nothing = bench
        .notification(Kind::Confirmable, 13, "")
        .with_content_format(ContentFormat::LWM2M_TLV);
    bench.hears(HOME, &nothing);
    assert_eq!(bench.occurred(), [What::Notified(News::Empty)]);
    let end = bench.notification(Kind::Confirmable, 14, "86");
    let end = Message::separate(end.kind, Code::NOT_FOUND, end.message_id, end.token);
    bench.hears(HOME, &end);
    let lost = [What::ObservationLost, What::Notified(News::Unusable)];
    assert_eq!(bench.occurred(), lost);
}

#[test]
fn observing_again_is_an_exchange_of_its_own() {
    let mut bench = Bench::observed();
    bench.register();
    assert_eq!(bench.occurred(), [What::Begun(Purpose::Observation)]);
    assert_eq!(bench.traces(), [None]);
}

#[test]
fn a_device_stands_as_it_was_left() {
    let mut bench = Bench::new();
    let nothing = Standing {
        listens: Listens::Unregistered,
        scheduled: 0,
        in_progress: 0,
        exchange: InFlight::No,
    };
    assert_eq!(bench.device().standing(), nothing);
    bench.ask(read(BATTERY).when_active());
    let waiting = Standing {
        scheduled: 1,
        ..nothing
    };
    assert_eq!(bench.device().standing(), waiting);
    bench.register();
    let awake = Standing {
        listens: Listens::Always,
        in_progress: 1,
        exchange: InFlight::Yes,
        ..nothing
    };
    assert_eq!(bench.device().standing(), awake);
    let mut sleeper = Bench::registered_for_queue_mode();
    sleeper.at(S).update();
    let listens = sleeper.device().standing().listens;
    let Listens::Until(until) = listens else {
        panic!("{listens:?}");
    };
    assert_eq!(sleeper.since_start(until), 94 * S);
}

fn asked_once() -> Bench {
    let mut bench = Bench::registered();
    bench.ask(read(BATTERY));
    bench
}

fn asked(action: ActionId, operation: Operation) -> Asked {
    Asked {
        action,
        protocol: Protocol::Lwm2m,
        task: Task::Operation(operation),
    }
}

fn response(id: u16) -> Message {
    let token = Token::new(&[9, 9]).unwrap();
    Message::separate(Kind::Confirmable, Code::CONTENT, MessageId(id), token)
}
