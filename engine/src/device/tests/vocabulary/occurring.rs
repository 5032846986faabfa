//! The vocabulary of step events: the kind of a message, and what happened.

use protocol::coap::message::Message;

use super::{DeviceFixture, HOME, peer};
use crate::datagram::Datagram;
use crate::ids::TraceId;
use crate::step_event::{StepEventKind, UplinkKind};

impl DeviceFixture {
    /// The kind that a message of the device is counted as.
    pub(in crate::device::tests) fn kind_of(&mut self, message: &Message) -> UplinkKind {
        let message = message.clone();
        let peer = peer(HOME);
        let datagram = Datagram::new(0, peer, message);
        self.step(|device, m, out| device.handle_datagram(m, &datagram, out))
            .0
    }

    /// The step events of the last step.
    pub(in crate::device::tests) fn step_events(&self) -> Vec<StepEventKind> {
        self.events.iter().map(|it| it.kind).collect()
    }

    /// The traces of the calls behind the step events of the last step.
    pub(in crate::device::tests) fn traces(&self) -> Vec<Option<TraceId>> {
        self.events.iter().map(|it| it.trace).collect()
    }
}
