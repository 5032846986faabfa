//! How does the device answer a Read-Composite request? (LwM2M Core 1.1 section 6.3.8)

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload;

use super::configuration::CompositeRead;
use super::downlink::acknowledgement_of;
use super::event::{DeviceEvent, DeviceOutput, Operation};
use super::operation_log::PerformedOperation;
use super::outcome::ResponseContent;
use super::{SimulatedDevice, blocks};

impl SimulatedDevice {
    /// Handles a request for several paths, and returns the immediate answer.
    pub(super) fn compose(
        &mut self,
        request: &Message,
        out: &mut Vec<DeviceOutput>,
    ) -> Option<Message> {
        let outcome = match self.configuration.composite {
            CompositeRead::Answered => self.read_several(request),
            CompositeRead::AcknowledgedOnly => return acknowledgement_of(request),
            CompositeRead::Refused(code) => ResponseContent::of(code),
        };
        if outcome.code.is_success() {
            let code = outcome.code;
            out.push(DeviceOutput::Report(DeviceEvent::AnsweredSeveral { code }));
        }
        Some(self.respond(request, outcome))
    }

    fn read_several(&mut self, request: &Message) -> ResponseContent {
        let paths = match self.paths_in(request) {
            Ok(paths) => paths,
            Err(code) => return ResponseContent::of(code),
        };
        let Some(accept) = request.accept().or(request.content_format()) else {
            return ResponseContent::of(Code::NOT_ACCEPTABLE);
        };
        let outcome = self.resources.read_several(&paths, accept);
        if outcome.code.is_success() && !blocks::continues(request) {
            for path in paths {
                self.performed.add(PerformedOperation {
                    number: self.performed.count(),
                    path,
                    operation: Operation::Read,
                    message_id: request.message_id,
                    token: request.token,
                    format: outcome.format,
                    payload: outcome.payload.clone(),
                });
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
