//! What a device sends unasked: taken once its values are told (LwM2M Core 1.1 section 6.4.6).

use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Sample, Scope, Undecodable};

use crate::action::Protocol;
use crate::admin_log::entry::Entry;
use crate::datagram::Datagram;
use crate::device::Device;
use crate::device::record::Logged;
use crate::device::samples;
use crate::effect::Effects;
use crate::event::Cause;
use crate::moment::Moment;
use crate::occurrence::{News, What};

impl Device {
    /// Takes what the device sends. It is thanked for what is durable by then, and for nothing
    /// else: what is not taken now it sends again.
    pub(super) fn take_send(&mut self, m: &mut Moment, datagram: &Datagram, out: &mut Effects) {
        if !self.is_registered_at(datagram.peer, m.now()) {
            return self.answer(m, datagram, Code::NOT_FOUND, out);
        }
        if !self.pace.take(m.now(), 1) {
            out.note(None, What::Sent(News::Excessive));
            return self.put_off(datagram, out);
        }
        self.note_uplink(m.now(), Protocol::Lwm2m);
        let (code, news) = match self.samples_in(Scope::All, &datagram.message) {
            Ok(samples) => (Code::CHANGED, self.tell_sent(m, samples, out)),
            Err(why) => {
                let bytes = &datagram.message.payload;
                let what = format!("what the device sent cannot be read: {why}");
                self.keep_unreadable(m, &what, bytes, out);
                (code_for(why), News::Unusable)
            }
        };
        out.note(None, What::Sent(news));
        if self.record_is_stale(m.now()) {
            self.save_record(m.now(), out);
        }
        self.answer(m, datagram, code, out);
    }

    fn tell_sent(&mut self, m: &mut Moment, samples: Vec<Sample>, out: &mut Effects) -> News {
        if samples.is_empty() {
            return News::Empty;
        }
        self.count_further(m.now(), samples.len());
        let mut paths = samples.iter().map(|sample| sample.path);
        let unknown = paths.find(|path| !self.knows(*path));
        let told = samples::by_time(m.now(), samples);
        self.tell_measurements(m, Cause::Send, told, out);
        if let Some(path) = unknown {
            self.log_unknown(m, path, out);
        }
        News::Told
    }

    /// Values of what nobody knows are kept all the same, and the customer is told once.
    fn log_unknown(&mut self, m: &mut Moment, path: Path, out: &mut Effects) {
        match self.record.unknown_object {
            Logged::Yes => {}
            Logged::No => {
                self.record.unknown_object = Logged::Yes;
                let entry = Entry::unknown_object(m, self.seen_at(self.record.peer), &path);
                self.log(m, entry, out);
                self.save_record(m.now(), out);
            }
        }
    }

    /// Whether the model has the object of a path, and the registration the instance.
    fn knows(&self, path: Path) -> bool {
        let is_offered = self
            .record
            .registration
            .as_ref()
            .is_some_and(|registration| registration.links.offers(path));
        is_offered && self.object_at(path.object_id()).is_some()
    }
}

/// How to answer what cannot be read. That there is no reader for its format is no case of its own
/// (4.15): no device sends the same again in another format.
fn code_for(why: Undecodable) -> Code {
    match why {
        Undecodable::TooMany => Code::REQUEST_ENTITY_TOO_LARGE,
        Undecodable::UnsupportedFormat(_)
        | Undecodable::OneValue(_)
        | Undecodable::Nameless(_)
        | Undecodable::NoFormat
        | Undecodable::Malformed(_)
        | Undecodable::MalformedTlv(_)
        | Undecodable::MalformedSamples { .. } => Code::BAD_REQUEST,
    }
}
