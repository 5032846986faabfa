//! How is the service's API asked? One request, one connection, one answer, over loopback.

use std::io::{self, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::steps::Stop;

/// Who is asked, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Where the API listens.
    pub(crate) address: SocketAddr,
    /// The bearer's token; empty for who has none.
    pub(crate) token: String,
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

/// What came back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: String,
}

impl Client {
    /// Asks for what is there.
    pub(crate) fn look(&self, path: &str) -> io::Result<Answer> {
        let head = self.head("GET", path, "");
        self.exchange(|stream| write!(stream, "{head}\r\n"))
    }

    /// Posts a body and gives the answer, which must have the expected status.
    pub(crate) fn post(
        &self,
        path: &str,
        media_type: &str,
        body: &str,
        expected: u16,
    ) -> Result<Value, Stop> {
        let length = body.len();
        let headers = format!("content-type: {media_type}\r\ncontent-length: {length}\r\n");
        let head = self.head("POST", path, &headers);
        let answer = self.exchange(|stream| write!(stream, "{head}\r\n{body}"));
        judge(path, answer, expected)
    }

    /// Posts a body made line by line while it is sent.
    pub(crate) fn post_lines(
        &self,
        path: &str,
        media_type: &str,
        lines: impl Iterator<Item = String>,
        expected: u16,
    ) -> Result<Value, Stop> {
        let headers = format!("content-type: {media_type}\r\ntransfer-encoding: chunked\r\n");
        let head = self.head("POST", path, &headers);
        let answer = self.exchange(|stream| {
            write!(stream, "{head}\r\n")?;
            for line in lines {
                // A chunk's length, and the line with its end.
                write!(stream, "{:x}\r\n{line}\n\r\n", line.len() + 1)?;
            }
            write!(stream, "0\r\n\r\n")
        });
        judge(path, answer, expected)
    }

    fn head(&self, method: &str, path: &str, headers: &str) -> String {
        let authorization = match self.token.as_str() {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{authorization}{headers}",
            self.address
        )
    }

    fn exchange(
        &self,
        write: impl FnOnce(&mut BufWriter<&TcpStream>) -> io::Result<()>,
    ) -> io::Result<Answer> {
        let stream = TcpStream::connect_timeout(&self.address, self.patience)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        let mut writer = BufWriter::with_capacity(1 << 16, &stream);
        let written = write(&mut writer).and_then(|()| writer.flush());
        let mut bytes = Vec::new();
        let read = (&stream).read_to_end(&mut bytes);
        // Who is refused midway may be cut off: the refusal says more than the broken pipe.
        if let Some(answer) = parse(&bytes) {
            return Ok(answer);
        }
        written?;
        read?;
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn judge(path: &str, answer: io::Result<Answer>, expected: u16) -> Result<Value, Stop> {
    let answer = answer.map_err(|error| Stop::Failed(format!("POST {path}: {error}")))?;
    let Answer { status, body } = answer;
    if status != expected {
        return Err(Stop::Failed(format!("POST {path}: {status} {body}")));
    }
    serde_json::from_str(&body)
        .map_err(|error| Stop::Failed(format!("POST {path}: {error} in {body}")))
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Client, parse};
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let answer = parse(b"HTTP/1.1 404 Not Found\r\na: b\r\n\r\n{}").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (404, "{}"));
        assert_eq!(parse(b"HTTP/1.1 404"), None);
    }

    #[test]
    fn lines_are_posted_one_chunk_each() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client {
            address: listener.local_addr().unwrap(),
            token: "secret".to_owned(),
            patience: Duration::from_secs(30),
        };
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"\r\n0\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                heard.extend(byte);
            }
            let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"lines\":2}";
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(heard).unwrap()
        });
        let lines = ["one".to_owned(), "sixteen letters.".to_owned()].into_iter();
        let answer = client.post_lines("/import", "text/x", lines, 200);
        assert_eq!(answer.unwrap()["lines"], 2);
        let heard = server.join().unwrap();
        assert!(
            heard.contains("authorization: Bearer secret\r\n"),
            "{heard}"
        );
        let body = "\r\n\r\n4\r\none\n\r\n11\r\nsixteen letters.\n\r\n0\r\n\r\n";
        assert!(heard.ends_with(body), "{heard}");
    }
}
