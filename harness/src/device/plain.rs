//! What does the device answer over plain CoAP? A small table of paths and what they hold (RFC 7252
//! section 5.8, RFC 8132).

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;

use super::outcome::ResponseContent;
use super::resource::AnswerMode;

/// How many paths a device holds; one more is not made.
const PATHS_MAX: usize = 64;

/// How long the content of a path may grow: a simulated device is no file server.
const CONTENT_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// One path of a device that speaks plain CoAP, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPath {
    /// Where it is, such as "/pump/state"; what is asked with a query is asked of the path.
    pub path: String,
    /// What it holds.
    pub content: Vec<u8>,
    /// The format that its answers name.
    pub format: Option<ContentFormat>,
    /// How the device answers requests for it.
    pub answer: AnswerMode,
}

impl PlainPath {
    /// Makes a path that holds something, of which no format is said.
    pub fn holding(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            format: None,
            answer: AnswerMode::Piggybacked,
        }
    }

    /// Has the answers for the path name a format.
    pub fn in_format(self, format: ContentFormat) -> Self {
        let format = Some(format);
        Self { format, ..self }
    }

    /// Has the device answer for the path in another way.
    pub fn answering(self, answer: AnswerMode) -> Self {
        Self { answer, ..self }
    }
}

/// All plain paths of one device.
#[derive(Clone, Debug)]
pub(super) struct PlainPaths {
    entries: Vec<PlainPath>,
    /// Whether there are any to begin with: then others can be made.
    is_open: bool,
}

impl PlainPaths {
    pub(super) fn new(entries: Vec<PlainPath>) -> Self {
        let is_open = !entries.is_empty();
        Self { entries, is_open }
    }

    /// Tells whether paths can be made.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn find(&self, path: &str) -> Option<&PlainPath> {
        self.entries.iter().find(|entry| entry.path == path)
    }

    pub(super) fn find_mut(&mut self, path: &str) -> Option<&mut PlainPath> {
        self.entries.iter_mut().find(|entry| entry.path == path)
    }

    /// Tells what a path holds without doing anything.
    pub(super) fn read(&self, path: &str) -> ResponseContent {
        let entry = self.find(path);
        entry.map_or(ResponseContent::of(Code::NOT_FOUND), |entry| {
            entry.told(Code::CONTENT)
        })
    }

    /// Does what is asked: GET tells, PUT replaces or makes, POST adds at the end and tells the
    /// whole, PATCH writes over the beginning, DELETE removes.
    pub(super) fn perform(&mut self, path: &str, by: &Message) -> ResponseContent {
        let place = self.entries.iter().position(|entry| entry.path == path);
        let entry = place.and_then(|place| self.entries.get_mut(place));
        match (by.code, entry) {
            (Code::GET, Some(entry)) => entry.told(Code::CONTENT),
            (Code::PUT, Some(entry)) => {
                entry.content.clone_from(&by.payload);
                ResponseContent::of(Code::CHANGED)
            }
            (Code::PUT, None) => self.make(path, by),
            (Code::POST, Some(entry)) => entry.add(by),
            (Code::PATCH, Some(entry)) => {
                let kept = entry.content.get(by.payload.len()..).unwrap_or_default();
                entry.content = [&by.payload, kept].concat();
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
    fn told(&self, code: Code) -> ResponseContent {
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
        self.told(Code::CHANGED)
    }
}
