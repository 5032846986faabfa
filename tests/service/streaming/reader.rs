//! How does a customer's program read a stream of events?

use std::net::TcpStream;

use serde_json::Value;

use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::http::{Response, next_part};

/// A program that reads a stream.
pub(super) struct StreamReader {
    connection: TcpStream,
    /// The bytes of the body, chunked, that were not read yet.
    chunked: Vec<u8>,
    /// The text that was not read yet.
    text: String,
    /// The id of the last message, which an `EventSource` would keep.
    pub(super) last_id: String,
    is_complete: bool,
}

/// An event of a stream.
#[derive(Clone, Debug)]
pub(super) struct StreamedEvent {
    /// The position behind it.
    pub(super) id: String,
    /// Its type.
    pub(super) event: String,
    /// Its JSON.
    pub(super) data: Value,
}

impl StreamReader {
    /// Opens a stream, which has begun when this returns.
    pub(super) fn open(caller: &Caller, query: &str) -> Self {
        Self::begun(caller, query, "")
    }

    /// Resumes a stream.
    pub(super) fn resumed(caller: &Caller, query: &str, last_id: &str) -> Self {
        Self::begun(caller, query, last_id)
    }

    fn begun(caller: &Caller, query: &str, last_id: &str) -> Self {
        let request = caller.authorized("GET", &format!("{API}/events/stream?{query}"));
        let mut connection = match last_id {
            "" => request,
            last_id => request.header("last-event-id", last_id),
        }
        .begin(caller.address());
        let mut received = Vec::new();
        let (head, body_at) = loop {
            received.extend(next_part(&mut connection).unwrap().expect("a response"));
            let end = received.windows(4).position(|it| it == b"\r\n\r\n");
            if let Some(end) = end {
                break (Response::read(&received).unwrap(), end + 4);
            }
        };
        assert_eq!(head.status, 200, "{}", head.text());
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        let mut reader = Self {
            connection,
            chunked: received.split_off(body_at),
            text: String::new(),
            last_id: String::new(),
            is_complete: false,
        };
        reader.heartbeat();
        reader
    }

    /// The next event.
    pub(super) fn event(&mut self) -> StreamedEvent {
        self.next_event().expect("the stream has not ended")
    }

    /// The next events.
    pub(super) fn events(&mut self, count: usize) -> Vec<StreamedEvent> {
        (0..count).map(|_| self.event()).collect()
    }

    /// The events up to the end of the stream; whether it ended as a response does.
    pub(super) fn rest(mut self) -> (Vec<StreamedEvent>, bool) {
        let events = std::iter::from_fn(|| self.next_event()).collect();
        (events, self.is_complete)
    }

    /// Waits for a heartbeat.
    pub(super) fn heartbeat(&mut self) {
        let message = self.next_message().expect("the stream has not ended");
        let mut lines = message.lines();
        assert_eq!(lines.next(), Some(": heartbeat"), "{message}");
        let id = lines.next().and_then(|line| line.strip_prefix("id: "));
        self.last_id = id.expect("a heartbeat has a position").to_owned();
        assert_eq!(lines.next(), None, "{message}");
    }

    fn next_event(&mut self) -> Option<StreamedEvent> {
        loop {
            let message = self.next_message()?;
            if message.starts_with(':') {
                continue;
            }
            let mut lines = message.lines();
            let mut field = |name: &str| {
                let line = lines.next().and_then(|line| line.strip_prefix(name));
                line.unwrap_or_else(|| panic!("no {name}{message}"))
                    .to_owned()
            };
            let event = StreamedEvent {
                id: field("id: "),
                event: field("event: "),
                data: serde_json::from_str(&field("data: ")).unwrap(),
            };
            self.last_id.clone_from(&event.id);
            assert_eq!(event.data["type"], event.event, "{message}");
            return Some(event);
        }
    }

    /// The next message without its final empty line; none at the end.
    fn next_message(&mut self) -> Option<String> {
        self.unchunk();
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let (message, rest) = (message.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(message);
            }
            if self.is_complete || !self.receive() {
                return None;
            }
        }
    }

    /// Receives something; returns whether the connection goes on.
    fn receive(&mut self) -> bool {
        // Whether a connection that is closed by the service ends or is reset is a matter of what
        // is under way.
        let Ok(Some(part)) = next_part(&mut self.connection) else {
            return false;
        };
        self.chunked.extend(part);
        self.unchunk();
        true
    }

    /// Moves the chunks that are complete to the text.
    fn unchunk(&mut self) {
        while let Some(end) = self.chunked.windows(2).position(|it| it == b"\r\n") {
            let size = std::str::from_utf8(&self.chunked[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            let (begin, end) = (end + 2, end + 2 + size);
            if self.chunked.len() < end + 2 {
                break;
            }
            self.text += std::str::from_utf8(&self.chunked[begin..end]).unwrap();
            self.chunked.drain(..end + 2);
            self.is_complete |= size == 0;
        }
    }
}
