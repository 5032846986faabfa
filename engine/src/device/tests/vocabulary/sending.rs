//! The vocabulary of Sends, and of the events of a step.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;

use super::{DeviceFixture, HOME};
use crate::change::Change;
use crate::effect::Effect;
use crate::event::Event;
use crate::ids::EventId;

use super::rendering::Lines;

impl DeviceFixture {
    /// The device sends values in SenML JSON.
    pub(in crate::device::tests) fn sends(&mut self, payload: &str) -> Lines {
        let message = self.sending(payload);
        self.receives(HOME, &message)
    }

    pub(in crate::device::tests) fn sending(&mut self, payload: &str) -> Message {
        self.request(Code::POST, &["dp"])
            .with_content_format(ContentFormat::SENML_JSON)
            .with_payload(payload)
    }

    /// The effects of the last step.
    pub(in crate::device::tests) fn wanted(&self) -> &[Effect] {
        &self.wanted
    }

    /// The events of the last step.
    /// The ids of all events of the device, oldest first.
    pub(in crate::device::tests) fn appended(&self) -> &[EventId] {
        &self.appended
    }

    pub(in crate::device::tests) fn events(&self) -> Vec<&Event> {
        self.wanted.iter().filter_map(event_in).collect()
    }
}

fn event_in(effect: &Effect) -> Option<&Event> {
    match effect {
        Effect::Save(Change::AppendEvent(event)) => Some(event),
        Effect::Save(_)
        | Effect::Expect(_)
        | Effect::Count(_)
        | Effect::Log(_)
        | Effect::Send(_) => None,
    }
}
