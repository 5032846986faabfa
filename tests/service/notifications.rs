//! Is each notification handled as RFC 7641 sections 3.4 to 3.6 say, byte by byte?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use serde_json::Value;

use crate::test_service::{ID, start};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::observe_start;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::DeviceSocket;

const ADDRESS: &str = "/3303/0/5700";

/// A device controlled datagram by datagram, with an observed temperature.
struct Observed {
    _service: Service,
    caller: Caller,
    wire: DeviceSocket,
    /// The token of its notifications.
    token: Token,
}

#[test]
fn an_unreadable_notification_is_acknowledged_and_logged() {
    let observed = Observed::from(1);
    let warm = observed.notification(MessageKind::Confirmable, 50, 2, "warm");
    observed.wire.send(&warm.encode());
    assert_eq!(
        observed.wire.receive(),
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
    let next = observed.notification(MessageKind::Confirmable, 51, 3, "22");
    observed.wire.send(&next.encode());
    assert_eq!(
        observed.wire.receive(),
        Message::acknowledgement(MessageId(51))
    );
    assert_eq!(observed.reported(), [22.0]);
}

impl Observed {
    /// Begins an observation whose first response has this sequence number.
    fn from(sequence: u32) -> Self {
        let (service, caller) = start(&[]);
        caller.create_device(ID, DEVICE_IP);
        let wire = DeviceSocket::to(&service);
        wire.register(ID, 1);
        let begin = caller.create_action(ID, &observe_start(ADDRESS));
        let request = wire.receive_request();
        assert_eq!(request.observe(), Some(0), "{request:?}");
        let answer = Message::response_to(&request, Code::CONTENT, MessageId(0));
        let answer = answer
            .with_observe(sequence)
            .with_content_format(ContentFormat::TEXT)
            .with_payload("21.5");
        wire.send(&answer.encode());
        let action = caller.final_action(&begin);
        assert_eq!(action["status"], "SUCCEEDED", "{action}");
        Self {
            _service: service,
            caller,
            wire,
            token: request.token,
        }
    }

    fn notification(&self, kind: MessageKind, id: u16, sequence: u32, text: &str) -> Message {
        notification(kind, id, self.token, text).with_observe(sequence)
    }

    /// The notified temperatures, oldest first.
    fn reported(&self) -> Vec<Value> {
        let notified = self.caller.notified(ID, ADDRESS).into_iter();
        notified.map(|values| values[ADDRESS].clone()).collect()
    }
}

fn notification(kind: MessageKind, id: u16, token: Token, text: &str) -> Message {
    Message::separate(kind, Code::CONTENT, MessageId(id), token)
        .with_content_format(ContentFormat::TEXT)
        .with_payload(text)
}
