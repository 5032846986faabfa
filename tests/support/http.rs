//! How does a test send one HTTP request over one connection?

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::poll::PATIENCE;

/// A request being built.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    head: String,
    body: String,
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// The status code.
    pub(crate) status: u16,
    head: String,
    body: String,
}

impl Request {
    /// A request without a body.
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self::to_host("test", method, path)
    }

    /// A request to a host of this name.
    pub(crate) fn to_host(host: &str, method: &str, path: &str) -> Self {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        Self {
            head,
            body: String::new(),
        }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Adds a JSON body.
    pub(crate) fn json(self, body: &Value) -> Self {
        self.text("application/json", &body.to_string())
    }

    /// Adds a body of any type.
    pub(crate) fn text(self, content_type: &str, body: &str) -> Self {
        let mut request = self.header("content-type", content_type);
        request.body = body.to_owned();
        request
    }

    /// Sends the request and waits for the response; returns network errors.
    pub(crate) fn try_send(&self, to: SocketAddr) -> std::io::Result<Response> {
        let length = self.body.len();
        self.exchange(
            to,
            &format!("content-length: {length}\r\n\r\n{}", self.body),
        )
    }

    /// Sends the beginning of a request and waits for the response.
    pub(crate) fn send_part(&self, to: SocketAddr, text: &str) -> Response {
        let response = self.exchange(to, &format!("\r\n{text}"));
        response.unwrap_or_else(|error| panic!("{}\n{error}", self.head))
    }

    /// Sends the beginning of a request and closes the connection.
    pub(crate) fn leave_behind(&self, to: SocketAddr, text: &str) {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
        let text = format!("{}\r\n{text}", self.head);
        stream.write_all(text.as_bytes()).unwrap();
    }

    /// Sends the request and waits for the response.
    pub(crate) fn send(&self, to: SocketAddr) -> Response {
        self.try_send(to)
            .unwrap_or_else(|error| panic!("{}\n{error}", self.head))
    }

    fn exchange(&self, to: SocketAddr, rest: &str) -> std::io::Result<Response> {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{}{rest}", self.head).as_bytes())?;
        let mut answer = Vec::new();
        while let Some(part) = next_part(&mut stream)? {
            answer.extend(part);
            let begun = Response::read(&answer);
            if let Some(begun) = begun.filter(Response::is_endless) {
                return Ok(begun);
            }
        }
        let is_head = self.head.starts_with("HEAD ");
        let response = Response::read(&answer).filter(|it| is_head || it.is_whole());
        response.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
    }

    /// Sends the request and returns the connection, from which the response is read.
    pub(crate) fn begin(&self, to: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("{}\r\n", self.head);
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }
}

/// What is received next; none at the end.
pub(crate) fn next_part(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let mut part = vec![0; 65_536];
    loop {
        match stream.read(&mut part) {
            Ok(length) => {
                part.truncate(length);
                return Ok((length > 0).then_some(part));
            }
            // A process that was stopped and goes on is interrupted in what has a timeout.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Response {
    /// The response, or None if the connection broke in its head.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    /// Whether the body has no end: the rest of such a response is not received.
    fn is_endless(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// Whether the body was received completely.
    fn is_whole(&self) -> bool {
        if self.header("transfer-encoding").is_some() {
            return self.body.ends_with("\r\n0\r\n\r\n");
        }
        let length = self.header("content-length");
        let length = length.map(|length| length.parse().unwrap());
        length.is_none_or(|length: usize| length == self.body.len())
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The body as text; one of unknown length in its chunks.
    pub(crate) fn text(&self) -> &str {
        &self.body
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.body);
        parsed.unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    /// The body as JSON, after checking the status.
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.json()
    }
}
