//! What is the response to a request, before it is encoded?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::path::Path;

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseContent {
    pub(super) code: Code,
    pub(super) format: Option<ContentFormat>,
    /// The sequence number of a notification, or of the response that starts an observation.
    pub(super) observe: Option<u32>,
    pub(super) payload: Vec<u8>,
    /// The instance that was created.
    pub(super) location: Option<Path>,
}

impl ResponseContent {
    pub(super) fn of(code: Code) -> Self {
        Self {
            code,
            format: None,
            observe: None,
            payload: Vec::new(),
            location: None,
        }
    }

    /// Adds the content to a response message.
    pub(super) fn fill(self, message: Message) -> Message {
        let message = match self.observe {
            Some(sequence) => message.with_observe(sequence),
            None => message,
        };
        let message = match self.format {
            Some(format) => message.with_content_format(format),
            None => message,
        };
        let location = self.location.iter().flat_map(Path::segments);
        let message = message.with_location_path(location.map(|id| id.to_string()));
        message.with_payload(self.payload)
    }

    pub(super) fn content(format: ContentFormat, payload: Vec<u8>) -> Self {
        Self {
            format: Some(format),
            payload,
            ..Self::of(Code::CONTENT)
        }
    }
}
