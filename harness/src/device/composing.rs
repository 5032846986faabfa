//! How does the device answer a request for several paths? (LwM2M Core 1.1 sections 6.3.8
//! and 6.3.9)

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload;

use super::configuration::CompositeRead;
use super::downlink::acknowledgement_of;
use super::event::{DeviceEvent, DeviceOutput, Operation};
use super::outcome::ResponseContent;
use super::{SimulatedDevice, blocks};

impl SimulatedDevice {
    /// Handles a request for several paths, and returns the immediate answer.
    pub(super) fn compose(
        &mut self,
        now_ms: i64,
        request: &Message,
        out: &mut Vec<DeviceOutput>,
    ) -> Option<Message> {
        let outcome = match self.configuration.composite {
            CompositeRead::Answered => self.read_several(now_ms, request),
            CompositeRead::AcknowledgedOnly => return acknowledgement_of(request),
            CompositeRead::Refused(code) => ResponseContent::of(code),
        };
        if outcome.code.is_success() {
            let code = outcome.code;
            out.push(DeviceOutput::Report(DeviceEvent::AnsweredSeveral { code }));
        }
        Some(self.respond(request, outcome))
    }

    /// Handles a write of several paths, and returns the immediate answer.
    pub(super) fn write_composite(
        &mut self,
        request: &Message,
        out: &mut Vec<DeviceOutput>,
    ) -> Option<Message> {
        let code = match self.configuration.composite {
            CompositeRead::Answered => self.write_several(request),
            CompositeRead::AcknowledgedOnly => return acknowledgement_of(request),
            CompositeRead::Refused(code) => code,
        };
        if code.is_success() {
            out.push(DeviceOutput::Report(DeviceEvent::AnsweredSeveral { code }));
        }
        Some(self.respond(request, ResponseContent::of(code)))
    }

    fn write_several(&mut self, request: &Message) -> Code {
        if blocks::continues(request) {
            return Code::CHANGED;
        }
        let paths = match self.resources.write_several(request) {
            Ok(paths) => paths,
            Err(code) => return code,
        };
        self.session.observations.look(&self.resources);
        for path in paths {
            let content = (request.content_format(), &*request.payload);
            self.performed
                .add_operation(request, (path, Operation::Write), content);
        }
        Code::CHANGED
    }

    fn read_several(&mut self, now_ms: i64, request: &Message) -> ResponseContent {
        let paths = match self.paths_in(request) {
            Ok(paths) => paths,
            Err(code) => return ResponseContent::of(code),
        };
        let Some(accept) = request.accept().or(request.content_format()) else {
            return ResponseContent::of(Code::NOT_ACCEPTABLE);
        };
        let mut outcome = self.resources.read_several(&paths, accept);
        if outcome.code.is_success() && !blocks::continues(request) {
            let observations = &mut self.session.observations;
            let observed = (&*paths, &self.resources);
            let (operation, sequence) = match request.observe() {
                Some(0) => (
                    Operation::Observe,
                    observations.begin(now_ms, request, observed, &outcome),
                ),
                Some(1) => {
                    observations.end(request.token, &paths);
                    (Operation::CancelObservation, None)
                }
                Some(_) | None => (Operation::Read, None),
            };
            outcome.observe = sequence;
            for path in paths {
                let content = (request.content_format(), &*outcome.payload);
                self.performed
                    .add_operation(request, (path, operation), content);
            }
        }
        outcome
    }

    fn paths_in(&self, request: &Message) -> Result<Vec<Path>, Code> {
        let format = request.content_format();
        let supported = format.filter(|format| self.resources.formats().has(*format));
        let format = supported.ok_or(Code::UNSUPPORTED_CONTENT_FORMAT)?;
        payload::decode_paths(format, &request.payload).map_err(|_| Code::BAD_REQUEST)
    }
}
