//! Is each notification met as the standard says, byte by byte? (RFC 7641 sections 3.4 to 3.6)

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::token::Token;
use serde_json::Value;

use crate::scene::{ID, start};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{observe_end, observe_start};
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::Wire;

const ADDRESS: &str = "/3303/0/5700";

/// A device by hand, of which a temperature is observed.
struct Observed {
    service: Service,
    caller: Caller,
    wire: Wire,
    /// What its notifications are known by.
    token: Token,
}

#[test]
fn a_notification_nobody_asked_for_is_rejected() {
    let observed = Observed::from(1);
    let stranger = Token::from_u64(0x5167);
    for (id, kind) in [(50, Kind::NonConfirmable), (51, Kind::Confirmable)] {
        let notification = notification(kind, id, stranger, "22").with_observe(7);
        observed.wire.say(&notification.encode());
        assert_eq!(observed.wire.hear(), Message::reset(MessageId(id)));
    }
    assert_eq!(observed.told(), Vec::<Value>::new());
}

#[test]
fn a_confirmable_notification_is_acknowledged_as_often_as_it_comes_and_told_once() {
    let observed = Observed::from(1);
    let confirmable = observed.notification(Kind::Confirmable, 50, 2, "22");
    for _ in 0..3 {
        observed.wire.say(&confirmable.encode());
        let acknowledged = Message::acknowledgement(MessageId(50));
        assert_eq!(observed.wire.hear(), acknowledged);
    }
    assert_eq!(observed.told(), [22.0]);
}

#[test]
fn a_notification_that_wants_no_acknowledgement_gets_none() {
    let observed = Observed::from(1);
    let notification = observed.notification(Kind::NonConfirmable, 50, 2, "22");
    observed.wire.say(&notification.encode());
    assert_eq!(observed.wire.heard_before_ping(), []);
    assert_eq!(observed.told(), [22.0]);
}

#[test]
fn a_notification_that_was_overtaken_is_not_told() {
    let observed = Observed::from(0xFF_FFFD);
    // The number before the last, the last, and the second after it, in 24 bits.
    for (id, sequence, text) in [
        (50, 0xFF_FFFE, "1"),
        (51, 1, "3"),
        (52, 0xFF_FFFF, "2"),
        (53, 1, "3.5"),
        (54, 2, "4"),
    ] {
        let notification = observed.notification(Kind::Confirmable, id, sequence, text);
        observed.wire.say(&notification.encode());
        let acknowledged = Message::acknowledgement(MessageId(id));
        assert_eq!(observed.wire.hear(), acknowledged, "{text}");
    }
    assert_eq!(observed.told(), [1.0, 3.0, 4.0]);
}

#[test]
fn an_answer_to_be_observed_no_more_may_be_crossed_by_a_notification() {
    let observed = Observed::from(1);
    let end = observed.caller.create_action(ID, &observe_end(ADDRESS));
    let request = observed.wire.hear_request();
    assert_eq!(
        (request.observe(), request.token),
        (Some(1), observed.token)
    );
    let crossing = observed.notification(Kind::NonConfirmable, 50, 2, "22");
    observed.wire.say(&crossing.encode());
    let answer = Message::response_to(&request, Code::CONTENT, MessageId(0));
    let answer = answer
        .with_content_format(ContentFormat::TEXT)
        .with_payload("22");
    observed.wire.say(&answer.encode());
    let action = observed.caller.final_action(&end);
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    assert_eq!(observed.told(), [22.0]);
    let late = observed.notification(Kind::NonConfirmable, 51, 3, "23");
    observed.wire.say(&late.encode());
    assert_eq!(observed.wire.hear(), Message::reset(MessageId(51)));
}

#[test]
fn a_device_that_ends_an_observation_is_believed_and_the_customer_told() {
    let ends = [
        (Code::NOT_FOUND, "the device answered 4.04"),
        (Code::CONTENT, "the device ended it"),
    ];
    for (code, why) in ends {
        let observed = Observed::from(1);
        let mut last = notification(Kind::Confirmable, 50, observed.token, "22");
        last.code = code;
        observed.wire.say(&last.encode());
        assert_eq!(
            observed.wire.hear(),
            Message::acknowledgement(MessageId(50))
        );
        assert_eq!(observed.caller.observation(ID, ADDRESS), None, "{why}");
        let entry = observed.caller.log_entries().remove(0);
        assert_eq!(entry["message"], "LwM2M[ObservationLost]", "{entry}");
        let description = entry["description"].as_str().unwrap();
        assert!(
            description.contains(ADDRESS) && description.contains(why),
            "{entry}"
        );
        let late = observed.notification(Kind::NonConfirmable, 51, 2, "23");
        observed.wire.say(&late.encode());
        assert_eq!(observed.wire.hear(), Message::reset(MessageId(51)));
    }
}

#[test]
fn a_notification_nobody_can_read_is_taken_and_logged() {
    let observed = Observed::from(1);
    let warm = observed.notification(Kind::Confirmable, 50, 2, "warm");
    observed.wire.say(&warm.encode());
    assert_eq!(
        observed.wire.hear(),
        Message::acknowledgement(MessageId(50))
    );
    let entry = observed.caller.log_entries().remove(0);
    assert_eq!(entry["message"], "Translator[UserPayloadError]", "{entry}");
    assert!(
        entry["description"].as_str().unwrap().contains(ADDRESS),
        "{entry}"
    );
    let reference = entry["payloadReference"].as_str().unwrap();
    let payload = observed.caller.request("GET", reference);
    assert_eq!((payload.status, payload.text()), (200, "warm"));
    let media_type = payload.header("content-type");
    assert_eq!(media_type, Some("application/octet-stream"));
    let next = observed.notification(Kind::Confirmable, 51, 3, "22");
    observed.wire.say(&next.encode());
    assert_eq!(
        observed.wire.hear(),
        Message::acknowledgement(MessageId(51))
    );
    assert_eq!(observed.told(), [22.0]);
}

#[test]
fn a_token_that_was_stored_counts_after_a_crash() {
    let mut observed = Observed::from(1);
    observed.service.kill();
    observed.service.start_again();
    observed.caller.follow(&observed.service);
    let notification = observed.notification(Kind::Confirmable, 50, 2, "22");
    observed.wire.say(&notification.encode());
    assert_eq!(
        observed.wire.hear(),
        Message::acknowledgement(MessageId(50))
    );
    assert_eq!(observed.told(), [22.0]);
}

impl Observed {
    /// Begins an observation with an answer of this number.
    fn from(sequence: u32) -> Self {
        let (service, caller) = start(&[]);
        caller.create_device(ID, DEVICE_IP);
        let wire = Wire::to(&service);
        wire.register(ID, 1);
        let begin = caller.create_action(ID, &observe_start(ADDRESS));
        let request = wire.hear_request();
        assert_eq!(request.observe(), Some(0), "{request:?}");
        let answer = Message::response_to(&request, Code::CONTENT, MessageId(0));
        let answer = answer
            .with_observe(sequence)
            .with_content_format(ContentFormat::TEXT)
            .with_payload("21.5");
        wire.say(&answer.encode());
        let action = caller.final_action(&begin);
        assert_eq!(action["status"], "SUCCEEDED", "{action}");
        Self {
            service,
            caller,
            wire,
            token: request.token,
        }
    }

    fn notification(&self, kind: Kind, id: u16, sequence: u32, text: &str) -> Message {
        notification(kind, id, self.token, text).with_observe(sequence)
    }

    /// The temperatures it told, the oldest first.
    fn told(&self) -> Vec<Value> {
        let told = self.caller.notified(ID, ADDRESS).into_iter();
        told.map(|values| values[ADDRESS].clone()).collect()
    }
}

fn notification(kind: Kind, id: u16, token: Token, text: &str) -> Message {
    Message::separate(kind, Code::CONTENT, MessageId(id), token)
        .with_content_format(ContentFormat::TEXT)
        .with_payload(text)
}
