//! How does a test stream a request body while it reads the response line by line?

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::Value;

use super::caller::{API, Caller};
use super::poll::PATIENCE;

/// An import whose progress is read while its body is sent.
pub(crate) struct Upload {
    sender: Sender,
    answer: BufReader<TcpStream>,
    is_answered: bool,
    /// The unread part of the chunks received so far.
    unread: Vec<u8>,
}

/// The sending half of an upload.
pub(crate) struct Sender(TcpStream);

impl Upload {
    /// Begins an import of this content type.
    pub(crate) fn begin(caller: &Caller, content_type: &str) -> Self {
        let mut stream = TcpStream::connect_timeout(&caller.address(), PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let token = caller.token();
        let head = format!(
            "POST {API}/devices/import HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {token}\r\n\
             content-type: {content_type}\r\naccept: application/x-ndjson\r\n\
             transfer-encoding: chunked\r\n\r\n",
        );
        stream.write_all(head.as_bytes()).unwrap();
        let answer = BufReader::new(stream.try_clone().unwrap());
        Self {
            sender: Sender(stream),
            answer,
            is_answered: false,
            unread: Vec::new(),
        }
    }

    /// Sends a part of the body.
    pub(crate) fn send(&mut self, part: &str) {
        assert!(self.sender.send(part), "the service takes no more");
    }

    /// Ends the body.
    pub(crate) fn finish(&mut self) {
        assert!(self.sender.finish(), "the service takes no more");
    }

    /// The sending half, for another thread.
    pub(crate) fn sender(&self) -> Sender {
        Sender(self.sender.0.try_clone().unwrap())
    }

    /// Closes the connection in the middle of the body.
    pub(crate) fn cut(self) {
        self.sender.0.shutdown(Shutdown::Both).unwrap();
    }

    /// Whether the response has begun.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Reads the head of the response and returns its status.
    pub(crate) fn status(&mut self) -> u16 {
        let first = self.head_line();
        while self.head_line() != "\r\n" {}
        self.is_answered = true;
        first.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// The next line of the response, or None at its end or where it breaks off.
    pub(crate) fn next_line(&mut self) -> Option<Value> {
        let end = loop {
            match self.unread.iter().position(|byte| *byte == b'\n') {
                Some(end) => break end,
                None => self.read_chunk()?,
            }
        };
        let line: Vec<u8> = self.unread.drain(..=end).collect();
        Some(serde_json::from_slice(&line).unwrap())
    }

    fn head_line(&mut self) -> String {
        let mut line = String::new();
        let read = self.answer.read_line(&mut line).unwrap();
        assert!(read > 0, "the connection broke before an answer came");
        line
    }

    fn read_chunk(&mut self) -> Option<()> {
        let mut size = String::new();
        self.answer.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.answer.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        self.unread.append(&mut chunk);
        (size > 0).then_some(())
    }
}

impl Sender {
    /// Sends a part of the body; false if the connection is closed.
    pub(crate) fn send(&mut self, part: &str) -> bool {
        let chunk = format!("{:x}\r\n{part}\r\n", part.len());
        self.0.write_all(chunk.as_bytes()).is_ok()
    }

    /// Ends the body; false if the connection is closed.
    pub(crate) fn finish(&mut self) -> bool {
        self.0.write_all(b"0\r\n\r\n").is_ok()
    }
}
