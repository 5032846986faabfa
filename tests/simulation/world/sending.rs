//! Sends of devices: one value or many, of now or of earlier times, in every format, and unreadable
//! payloads.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Sample};
use protocol::lwm2m::value::Value;

use super::World;
use crate::settings::pick;
use crate::trace::TraceEvent;

/// The values that devices measure and send; the last object is unknown to the service.
const MEASURED: [Path; 4] = [
    Path::resource(3303, 0, 5700),
    Path::resource(3304, 0, 5700),
    Path::resource(3304, 1, 5700),
    Path::resource(33_999, 0, 1),
];

/// The formats of Sends; the last one has no times.
const FORMATS: [ContentFormat; 3] = [
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
];

/// How many samples one Send has at most.
const SAMPLES_MAX: u32 = 6;

impl World {
    /// A device sends samples.
    pub(super) fn send_something(&mut self, who: usize) {
        if self.rng.below(10) == 0 {
            return self.send_rubbish(who);
        }
        let format = pick(&mut self.rng, FORMATS);
        let count = 1 + self.rng.below(SAMPLES_MAX);
        let samples = (0..count).map(|_| self.sample(format)).collect();
        self.sends(who, format, samples);
    }

    /// A sample with a unique value, of now or of another time.
    fn sample(&mut self, format: ContentFormat) -> Sample {
        let path = pick(&mut self.rng, MEASURED);
        let ago_ms = i64::from(self.rng.below(3_600_000));
        let measured = match self.rng.below(3) {
            _ if format == ContentFormat::LWM2M_CBOR => None,
            0 => None,
            1 => Some(Measured::Absolute(self.now_ms - ago_ms)),
            _ => Some(Measured::Relative(-ago_ms)),
        };
        Sample {
            path,
            value: self.measurement(),
            measured,
        }
    }

    /// A value that was never measured before.
    pub(crate) fn measurement(&mut self) -> Value {
        let number = u32::try_from(self.next_number()).expect("a world is not that old");
        Value::Float(f64::from(number) + 0.5)
    }

    /// A device sends these samples, unless it is off or busy.
    pub(crate) fn sends(&mut self, who: usize, format: ContentFormat, mut samples: Vec<Sample>) {
        // Without times there is one value of each path.
        if format == ContentFormat::LWM2M_CBOR {
            samples.sort_by_key(|sample| sample.path);
            samples.dedup_by_key(|sample| sample.path);
        }
        self.note(TraceEvent::Device { who, does: "sends" });
        let sends = &mut self.fleet.member_mut(who).sends;
        let before = std::mem::replace(sends, stored_of(&samples));
        let mut is_sent = false;
        self.drive(who, |device, now_ms, out| {
            is_sent = device.send(now_ms, format, &samples, out).is_ok();
        });
        if !is_sent {
            self.fleet.member_mut(who).sends = before;
        }
        self.census.sent += u64::from(is_sent);
    }

    /// A device sends an unreadable payload.
    fn send_rubbish(&mut self, who: usize) {
        let id = MessageId((self.rng.number() >> 48) as u16);
        let token = Token::from_u64(self.rng.number());
        let bytes = self.rng.number().to_be_bytes();
        let rubbish = Message::request(MessageKind::Confirmable, Code::POST, id, token)
            .with_uri_path(["dp"])
            .with_content_format(pick(&mut self.rng, FORMATS))
            .with_payload([&[0x60], &bytes[..]].concat());
        self.census.rubbish_sent += 1;
        let before = std::mem::take(&mut self.fleet.member_mut(who).sends);
        self.device_says(who, rubbish.encode());
        self.fleet.member_mut(who).sends = before;
    }
}

/// The samples that are stored: of those with the same path and time, the last.
fn stored_of(samples: &[Sample]) -> Vec<Sample> {
    let is_kept = |place: usize, sample: &Sample| {
        let mut later = samples.iter().skip(place + 1);
        !later.any(|other| (other.path, other.measured) == (sample.path, sample.measured))
    };
    let stored = samples.iter().enumerate();
    let stored = stored.filter(|(place, sample)| is_kept(*place, sample));
    stored.map(|(_, sample)| sample.clone()).collect()
}
