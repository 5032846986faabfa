//! How does the plugtest server answer a whole request? The resources of the ETSI test descriptions
//! for CoAP.

use std::collections::BTreeMap;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId};
use protocol::coap::option;

use super::links;

/// Longer than a block of 1,024 bytes, so that no peer gets it in one message.
const LARGE_BYTES: usize = 1280;

/// The Max-Age of an observed resource: longer than the time between changes.
const MAX_AGE_S: u32 = 1;

/// A long state stays long enough to be fetched in blocks.
const LARGE_TICKS: u32 = 4;

/// The observed resource that can be written, and the one that is too long for one message.
pub(super) const OBSERVED: &str = "obs";
pub(super) const OBSERVED_LARGE: &str = "obs-large";
pub(super) const OBSERVED_NON: &str = "obs-non";

/// The resources and their written states.
pub(super) struct Resources {
    written: BTreeMap<String, Body>,
    versions: u32,
    created: u32,
    ticks: u32,
    happened: Vec<ResourceChange>,
}

/// A change that observers have to be notified of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ResourceChange {
    /// The resource has a new state.
    Changed(&'static str),
    /// The resource cannot be observed any longer, with the code of the reason.
    Ended(&'static str, Code),
    /// All observers are forgotten, as after a restart.
    Forgotten,
}

#[derive(Clone)]
struct Body {
    bytes: Vec<u8>,
    format: ContentFormat,
    version: u32,
}

impl Resources {
    pub(super) fn new() -> Self {
        let mut site = Self {
            written: BTreeMap::new(),
            versions: 0,
            created: 0,
            ticks: 0,
            happened: Vec::new(),
        };
        for (path, text) in [
            ("test", "hello world"),
            ("validate", "first version"),
            (OBSERVED, "0"),
        ] {
            site.put(path, text.into(), ContentFormat::TEXT);
        }
        site.put("large-update", large(), ContentFormat::TEXT);
        site
    }

    /// Answers a request with a complete body.
    pub(super) fn answer(&mut self, request: &Message) -> Message {
        let path = path_of(request);
        match request.code {
            Code::GET => self.read(&path, request),
            Code::POST => self.post(&path, request),
            Code::PUT => self.write(&path, request),
            Code::DELETE => self.delete(&path, request),
            _ => response(request, Code::METHOD_NOT_ALLOWED),
        }
    }

    /// Changes the resources that change by themselves.
    pub(super) fn tick(&mut self) {
        self.ticks += 1;
        if let Some(body) = self.written.get(OBSERVED)
            && body.format == ContentFormat::TEXT
        {
            let text = self.ticks.to_string();
            self.put(OBSERVED, text.into(), ContentFormat::TEXT);
            self.happened.push(ResourceChange::Changed(OBSERVED));
        }
        self.happened.push(ResourceChange::Changed(OBSERVED_NON));
        if self.ticks.is_multiple_of(LARGE_TICKS) {
            self.happened.push(ResourceChange::Changed(OBSERVED_LARGE));
        }
    }

    /// The changes since the last call.
    pub(super) fn happened(&mut self) -> Vec<ResourceChange> {
        std::mem::take(&mut self.happened)
    }

    fn read(&self, path: &str, request: &Message) -> Message {
        let links = match path {
            ".well-known/core" => Some(&links::ENTRY[..]),
            "path" => Some(&links::PATH[..]),
            _ => None,
        };
        if let Some(links) = links {
            let text = links::chosen(links, request.uri_query());
            return content(request, ContentFormat::LINK_FORMAT, text);
        }
        match path {
            "multi-format" => multi_format(request),
            "query" => {
                let queries: Vec<&str> = request.uri_query().collect();
                content(request, ContentFormat::TEXT, queries.join("\n"))
            }
            "separate" | "seg1/seg2/seg3" | "link1" | "link2" | "link3" | "path/sub1"
            | "path/sub2" | "path/sub3" => content(request, ContentFormat::TEXT, path),
            "large" => content(request, ContentFormat::TEXT, large()),
            OBSERVED_NON => self.passing(request, self.ticks.to_string().into_bytes()),
            OBSERVED_LARGE => {
                let version = self.ticks / LARGE_TICKS;
                let mut bytes = format!("{version:>8}").into_bytes();
                bytes.extend(large());
                let answer = self.passing(request, bytes);
                answer.with_option(option::ETAG, &version.to_be_bytes())
            }
            _ => self.read_written(path, request),
        }
    }

    fn read_written(&self, path: &str, request: &Message) -> Message {
        let Some(body) = self.written.get(path) else {
            return response(request, Code::NOT_FOUND);
        };
        let tag = body.version.to_be_bytes();
        let mut known = values(request, option::ETAG);
        if known.any(|known| known == tag) {
            return response(request, Code::VALID).with_option(option::ETAG, &tag);
        }
        if request.accept().is_some_and(|wanted| wanted != body.format) {
            return response(request, Code::NOT_ACCEPTABLE);
        }
        let answer = content(request, body.format, body.bytes.clone());
        match path {
            OBSERVED => answer.with_max_age(MAX_AGE_S),
            _ => answer.with_option(option::ETAG, &tag),
        }
    }

    fn passing(&self, request: &Message, bytes: Vec<u8>) -> Message {
        content(request, ContentFormat::TEXT, bytes).with_max_age(MAX_AGE_S)
    }

    fn post(&mut self, path: &str, request: &Message) -> Message {
        match path {
            "test" => response(request, Code::CREATED).with_location_path([
                "location1",
                "location2",
                "location3",
            ]),
            "location-query" => response(request, Code::CREATED)
                .with_option(option::LOCATION_QUERY, b"first=1")
                .with_option(option::LOCATION_QUERY, b"second=2"),
            "large-create" => {
                self.created += 1;
                let name = self.created.to_string();
                let format = request.content_format().unwrap_or(ContentFormat::TEXT);
                self.put(&format!("{path}/{name}"), request.payload.clone(), format);
                response(request, Code::CREATED).with_location_path([path, &name])
            }
            "large-post" => response(request, Code::CHANGED)
                .with_content_format(ContentFormat::TEXT)
                .with_payload(request.payload.to_ascii_uppercase()),
            "obs-reset" => {
                self.happened.push(ResourceChange::Forgotten);
                response(request, Code::CHANGED)
            }
            _ => self.refusal(path, request),
        }
    }

    fn write(&mut self, path: &str, request: &Message) -> Message {
        if !["test", "validate", "create1", "large-update", OBSERVED].contains(&path) {
            return self.refusal(path, request);
        }
        let before = self.written.get(path).cloned();
        if !meets_conditions(request, before.as_ref()) {
            return response(request, Code::PRECONDITION_FAILED);
        }
        let format = request.content_format().unwrap_or(ContentFormat::TEXT);
        self.put(path, request.payload.clone(), format);
        if path == OBSERVED {
            let is_same = before.as_ref().is_none_or(|body| body.format == format);
            self.happened.push(if is_same {
                ResourceChange::Changed(OBSERVED)
            } else {
                ResourceChange::Ended(OBSERVED, Code::NOT_ACCEPTABLE)
            });
        }
        let code = match before {
            Some(_) => Code::CHANGED,
            None => Code::CREATED,
        };
        response(request, code)
    }

    fn delete(&mut self, path: &str, request: &Message) -> Message {
        match path {
            // The resource stays, so that every description can begin with it.
            "test" => response(request, Code::DELETED),
            "create1" | OBSERVED => {
                self.written.remove(path);
                if path == OBSERVED {
                    self.happened
                        .push(ResourceChange::Ended(OBSERVED, Code::NOT_FOUND));
                }
                response(request, Code::DELETED)
            }
            _ => self.refusal(path, request),
        }
    }

    fn refusal(&self, path: &str, request: &Message) -> Message {
        let code = match self.read(path, request).code {
            Code::NOT_FOUND => Code::NOT_FOUND,
            _ => Code::METHOD_NOT_ALLOWED,
        };
        response(request, code)
    }

    fn put(&mut self, path: &str, bytes: Vec<u8>, format: ContentFormat) {
        self.versions += 1;
        let body = Body {
            bytes,
            format,
            version: self.versions,
        };
        self.written.insert(path.to_owned(), body);
    }
}

/// The path of a request as one text.
pub(super) fn path_of(request: &Message) -> String {
    request.uri_path().collect::<Vec<_>>().join("/")
}

/// Begins the answer to a request. The sender assigns the message id.
pub(super) fn response(request: &Message, code: Code) -> Message {
    Message::response_to(request, code, MessageId(0))
}

fn content(request: &Message, format: ContentFormat, body: impl Into<Vec<u8>>) -> Message {
    response(request, Code::CONTENT)
        .with_content_format(format)
        .with_payload(body)
}

fn multi_format(request: &Message) -> Message {
    match request.accept().unwrap_or(ContentFormat::TEXT) {
        ContentFormat::TEXT => content(request, ContentFormat::TEXT, "plain text"),
        ContentFormat::XML => content(request, ContentFormat::XML, "<text>marked up</text>"),
        _ => response(request, Code::NOT_ACCEPTABLE),
    }
}

/// If-Match and If-None-Match (RFC 7252 section 5.10.8).
fn meets_conditions(request: &Message, before: Option<&Body>) -> bool {
    let tag = before.map(|body| body.version.to_be_bytes());
    let mut wanted = values(request, option::IF_MATCH).peekable();
    let matches = wanted.peek().is_none()
        || wanted.any(|wanted| match &tag {
            Some(tag) => wanted.is_empty() || wanted == tag,
            None => false,
        });
    let must_be_new = values(request, option::IF_NONE_MATCH).next().is_some();
    matches && !(must_be_new && before.is_some())
}

fn values(request: &Message, number: u16) -> impl Iterator<Item = &[u8]> {
    let options = request.options();
    options.filter_map(move |(its, value)| (its == number).then_some(value))
}

fn large() -> Vec<u8> {
    let line = |number: usize| {
        format!(
            "{:-<63}\n",
            format!("line {number} of {LARGE_BYTES} bytes ")
        )
    };
    (1..=LARGE_BYTES / 64)
        .flat_map(|number| line(number).into_bytes())
        .collect()
}
