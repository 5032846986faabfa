//! Where does a line of a stream end? Splits chunks of any size into lines.
//!
//! Memory holds one chunk and one unfinished line: a line that is too long is skipped up to its end
//! and reported by its number.

use actix_web::web::Bytes;

/// The longest line that is parsed. A device with every name at its maximum length is under 2 KiB,
/// and JSON escapes do not make it four times as long.
pub(super) const LINE_BYTES_MAX: usize = 8_192;

/// Some programs begin a text with it; it is not part of the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Splits a stream into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    piece: Bytes,
    unfinished: Vec<u8>,
    /// Whether the unfinished line exceeds the maximum length.
    is_too_long: bool,
    /// Whether any bytes followed the last line end.
    is_begun: bool,
    /// The number of the last complete line, from 1.
    number: u64,
}

/// One line of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Line {
    /// The line number, from 1.
    pub(super) number: u64,
    /// The text without the line end.
    pub(super) text: Result<Bytes, TooLong>,
}

/// A line that exceeds the maximum length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooLong;

impl Lines {
    /// Adds the next chunk; all lines of the previous one must have been returned.
    pub(super) fn feed(&mut self, piece: Bytes) {
        self.piece = piece;
    }

    /// The next complete line.
    pub(super) fn next_whole(&mut self) -> Option<Line> {
        let Some(at) = self.piece.iter().position(|byte| *byte == b'\n') else {
            let piece = std::mem::take(&mut self.piece);
            self.keep(&piece);
            return None;
        };
        let mut last = self.piece.split_to(at + 1);
        last.truncate(at);
        Some(self.finished(last))
    }

    /// The last line, which has no line end, if there is one.
    pub(super) fn last(&mut self) -> Option<Line> {
        self.is_begun.then(|| self.finished(Bytes::new()))
    }

    fn keep(&mut self, piece: &[u8]) {
        self.is_begun |= !piece.is_empty();
        if self.unfinished.len() + piece.len() > LINE_BYTES_MAX {
            self.is_too_long = true;
            self.unfinished = Vec::new();
        }
        if !self.is_too_long {
            self.unfinished.extend_from_slice(piece);
        }
    }

    fn finished(&mut self, last: Bytes) -> Line {
        self.number += 1;
        self.is_begun = false;
        let is_too_long = std::mem::take(&mut self.is_too_long)
            || self.unfinished.len() + last.len() > LINE_BYTES_MAX;
        let mut text = if self.unfinished.is_empty() {
            last
        } else {
            let mut text = std::mem::take(&mut self.unfinished);
            text.extend_from_slice(&last);
            Bytes::from(text)
        };
        if self.number == 1 && text.starts_with(BYTE_ORDER_MARK) {
            text = text.split_off(BYTE_ORDER_MARK.len());
        }
        if text.ends_with(b"\r") {
            text.truncate(text.len() - 1);
        }
        Line {
            number: self.number,
            text: if is_too_long { Err(TooLong) } else { Ok(text) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_the_chunks_of_the_stream() {
        let text = b"\xEF\xBB\xBFone\r\n\ntwo\n\nthree\r\n f\xc3\xa9 ".as_slice();
        let whole = cut(text, text.len());
        let texts: Vec<_> = whole
            .iter()
            .map(|line| line.text.clone().unwrap())
            .collect();
        assert_eq!(texts, ["one", "", "two", "", "three", " f\u{e9} "]);
        let numbers: Vec<_> = whole.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        for size in 1..text.len() {
            assert_eq!(cut(text, size), whole, "pieces of {size}");
        }
    }

    #[test]
    fn a_line_end_at_the_end_of_the_stream_adds_no_empty_line() {
        assert_eq!(cut(b"one\n", 2).len(), 1);
        assert_eq!(cut(b"one\n\n", 2).len(), 2);
        assert_eq!(cut(b"", 2).len(), 0);
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_by_number_and_the_next_is_parsed() {
        let longest = "x".repeat(LINE_BYTES_MAX);
        let text = format!("{longest}\n{longest}x\nnext\n{longest}xx");
        for size in [1, 100, 8_192, 8_193, 40_000] {
            let lengths: Vec<_> = cut(text.as_bytes(), size)
                .iter()
                .map(|line| line.text.as_ref().map(Bytes::len).map_err(|_| line.number))
                .collect();
            assert_eq!(
                lengths,
                [Ok(LINE_BYTES_MAX), Err(2), Ok(4), Err(4)],
                "{size}"
            );
        }
    }

    fn cut(text: &[u8], size: usize) -> Vec<Line> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in text.chunks(size.max(1)) {
            lines.feed(Bytes::copy_from_slice(piece));
            found.extend(std::iter::from_fn(|| lines.next_whole()));
            assert!(lines.unfinished.len() <= LINE_BYTES_MAX);
        }
        found.extend(lines.last());
        found
    }
}
