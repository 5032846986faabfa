//! Which batch does the machine of a device commit for a Send? To measure the limit of the store
//! alone.

use std::sync::Arc;

use engine::action::Protocol;
use engine::change::{Batch, Change, Owner};
use engine::datagram::Datagram;
use engine::device::Device;
use engine::device::record::{DeviceRecord, ProtocolsSeen, Registration, RestoredDevice};
use engine::effect::Effects;
use engine::moment::{Moment, Timestamp};
use engine::peer::Peer;
use engine::policy::CustomerPolicy;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use crate::shelf::TempStore;
use crate::{fleet, line};

/// Registered devices that can send.
pub(crate) struct EventBatches {
    policy: Arc<CustomerPolicy>,
    record: DeviceRecord,
}

impl EventBatches {
    /// Devices that registered a moment ago.
    pub(crate) fn at(now: Timestamp) -> Self {
        let registration = Registration {
            salt: 7,
            lifetime_asked_s: Some(86_400),
            expires_at: now.plus_s(86_400),
            registered_at: now,
            version: Registration::parse_version("1.1").expect("a version"),
            binding: Registration::parse_binding("U").expect("a binding"),
            sms: None,
            links: Registration::parse_links("</1/0>,</3/0>,</4/0>,</3303/0>").expect("links"),
        };
        Self {
            policy: Arc::new(CustomerPolicy::of_rules(Arc::new(line::rules()))),
            record: DeviceRecord {
                first_contact_at: Some(now),
                last_seen_at: Some(now),
                protocols_seen: ProtocolsSeen::restored([Protocol::Lwm2m], Some(Protocol::Lwm2m)),
                registration: Some(registration),
                ..DeviceRecord::default()
            },
        }
    }

    /// The batch of a device that sends a value.
    pub(crate) fn batch(&self, shelf: &TempStore, device: u32, value: f32) -> Batch {
        self.batch_at(&mut shelf.clock.moment(), shelf.epoch, device, value)
    }

    /// The batch of a device that sends a value at a moment.
    pub(crate) fn batch_at(&self, m: &mut Moment, epoch: u64, device: u32, value: f32) -> Batch {
        let peer = Peer::plain((fleet::address(device), 5_683).into());
        let restored = RestoredDevice {
            profile: fleet::profile(device),
            record: DeviceRecord {
                peer: Some(peer),
                ..self.record.clone()
            },
            pending: Vec::new(),
            recent_events: Box::default(),
        };
        let mut device = Device::restore(m, Arc::clone(&self.policy), restored);
        let datagram = Datagram::new(0, peer, message(value, MessageId(1)));
        let mut out = Effects::new();
        device.handle_datagram(m, &datagram, &mut out);
        let owner = Owner::Shard {
            shard: device.key().shard(),
            epoch,
        };
        let batch = out.settle(owner).0;
        let is_event = |change: &Change| matches!(change, Change::AppendEvent(_));
        let events = batch.changes.iter().filter(|change| is_event(change));
        assert_eq!(events.count(), 1, "a Send is an event");
        batch
    }
}

/// A Send of a measured value (LwM2M Core 1.1 section 6.4.6).
fn message(value: f32, id: MessageId) -> Message {
    let name = b"\x81\xa2\x00\x6c/3303/0/5700\x02\xfa".as_slice();
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        id,
        Token::from_u64(id.0.into()),
    )
    .with_uri_path(["dp"])
    .with_content_format(ContentFormat::SENML_CBOR)
    .with_payload([name, &value.to_be_bytes()].concat())
}
