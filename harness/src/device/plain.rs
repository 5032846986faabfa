//! How does the device answer plain CoAP requests? With a small table of paths and their content
//! (RFC 7252 section 5.8, RFC 8132).

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;

use super::outcome::ResponseContent;
use super::resource::AnswerMode;

/// The maximum number of paths; no more are created.
const PATHS_MAX: usize = 64;

/// The maximum content of a path: a simulated device is no file server.
const CONTENT_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// A path of a device that speaks plain CoAP, and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPath {
    /// The path, such as "/pump/state"; the query of a request is ignored.
    pub path: String,
    /// The content.
    pub content: Vec<u8>,
    /// The Content-Format of its responses.
    pub format: Option<ContentFormat>,
    /// How the device answers requests for it.
    pub answer: AnswerMode,
}

impl PlainPath {
    /// A path with content, without a format.
    pub fn holding(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            format: None,
            answer: AnswerMode::Piggybacked,
        }
    }

    /// The same path with a format.
    pub fn in_format(self, format: ContentFormat) -> Self {
        let format = Some(format);
        Self { format, ..self }
    }

    /// The same path with another answer mode.
    pub fn answering(self, answer: AnswerMode) -> Self {
        Self { answer, ..self }
    }
}

/// All CoAP paths of a device.
#[derive(Clone, Debug)]
pub(super) struct PlainPaths {
    entries: Vec<PlainPath>,
    /// Whether there was one at the start: only then can others be created.
    is_open: bool,
}

impl PlainPaths {
    pub(super) fn new(entries: Vec<PlainPath>) -> Self {
        let is_open = !entries.is_empty();
        Self { entries, is_open }
    }

    /// Whether paths can be created.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn find(&self, path: &str) -> Option<&PlainPath> {
        self.entries.iter().find(|entry| entry.path == path)
    }

    pub(super) fn find_mut(&mut self, path: &str) -> Option<&mut PlainPath> {
        self.entries.iter_mut().find(|entry| entry.path == path)
    }

    /// The content of a path, without side effects.
    pub(super) fn read(&self, path: &str) -> ResponseContent {
        let entry = self.find(path);
        entry.map_or(ResponseContent::of(Code::NOT_FOUND), |entry| {
            entry.respond(Code::CONTENT)
        })
    }

    /// Performs a request: GET reads, PUT replaces or creates, POST appends and returns the whole
    /// content, PATCH overwrites the beginning, DELETE deletes.
    pub(super) fn perform(&mut self, path: &str, by: &Message) -> ResponseContent {
        let place = self.entries.iter().position(|entry| entry.path == path);
        let entry = place.and_then(|place| self.entries.get_mut(place));
        match (by.code, entry) {
            (Code::GET, Some(entry)) => entry.respond(Code::CONTENT),
            (Code::PUT, Some(entry)) => {
                entry.content.clone_from(&by.payload);
                ResponseContent::of(Code::CHANGED)
            }
            (Code::PUT, None) => self.make(path, by),
            (Code::POST, Some(entry)) => entry.add(by),
            (Code::PATCH, Some(entry)) => {
                let tail = entry.content.get(by.payload.len()..).unwrap_or_default();
                entry.content = [&by.payload, tail].concat();
                ResponseContent::of(Code::CHANGED)
            }
            (Code::DELETE, Some(_)) => {
                self.entries.retain(|entry| entry.path != path);
                ResponseContent::of(Code::DELETED)
            }
            (Code::GET | Code::POST | Code::PATCH | Code::DELETE, None) => {
                ResponseContent::of(Code::NOT_FOUND)
            }
            (_, _) => ResponseContent::of(Code::METHOD_NOT_ALLOWED),
        }
    }

    fn make(&mut self, path: &str, by: &Message) -> ResponseContent {
        if self.entries.len() >= PATHS_MAX {
            return ResponseContent::of(Code::INTERNAL_SERVER_ERROR);
        }
        let made = PlainPath {
            format: by.content_format(),
            ..PlainPath::holding(path, by.payload.as_slice())
        };
        self.entries.push(made);
        ResponseContent::of(Code::CREATED)
    }
}

impl PlainPath {
    fn respond(&self, code: Code) -> ResponseContent {
        ResponseContent {
            format: self.format,
            payload: self.content.clone(),
            ..ResponseContent::of(code)
        }
    }

    fn add(&mut self, by: &Message) -> ResponseContent {
        if self.content.len() + by.payload.len() > CONTENT_BYTES_MAX {
            return ResponseContent::of(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        self.content.extend(&by.payload);
        self.respond(Code::CHANGED)
    }
}
