//! Which method or response is a message? The codes of RFC 7252 section 12.1, with those of RFC
//! 7959 (block-wise), RFC 8132 (FETCH, PATCH) and RFC 8516 (4.29).

use std::fmt;

/// A code: three bits of class, five of detail, written `2.05`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Code(u8);

impl Code {
    /// 0.00: neither request nor response.
    pub const EMPTY: Code = Code::new(0, 0);
    /// 0.01.
    pub const GET: Code = Code::new(0, 1);
    /// 0.02.
    pub const POST: Code = Code::new(0, 2);
    /// 0.03.
    pub const PUT: Code = Code::new(0, 3);
    /// 0.04.
    pub const DELETE: Code = Code::new(0, 4);
    /// 0.05.
    pub const FETCH: Code = Code::new(0, 5);
    /// 0.06.
    pub const PATCH: Code = Code::new(0, 6);
    /// 0.07.
    pub const IPATCH: Code = Code::new(0, 7);
    /// 2.01.
    pub const CREATED: Code = Code::new(2, 1);
    /// 2.02.
    pub const DELETED: Code = Code::new(2, 2);
    /// 2.03.
    pub const VALID: Code = Code::new(2, 3);
    /// 2.04.
    pub const CHANGED: Code = Code::new(2, 4);
    /// 2.05.
    pub const CONTENT: Code = Code::new(2, 5);
    /// 2.31: send the next block.
    pub const CONTINUE: Code = Code::new(2, 31);
    /// 4.00.
    pub const BAD_REQUEST: Code = Code::new(4, 0);
    /// 4.01.
    pub const UNAUTHORIZED: Code = Code::new(4, 1);
    /// 4.02: a critical option is unknown or misused.
    pub const BAD_OPTION: Code = Code::new(4, 2);
    /// 4.03.
    pub const FORBIDDEN: Code = Code::new(4, 3);
    /// 4.04.
    pub const NOT_FOUND: Code = Code::new(4, 4);
    /// 4.05.
    pub const METHOD_NOT_ALLOWED: Code = Code::new(4, 5);
    /// 4.06.
    pub const NOT_ACCEPTABLE: Code = Code::new(4, 6);
    /// 4.08: blocks of the request are missing.
    pub const REQUEST_ENTITY_INCOMPLETE: Code = Code::new(4, 8);
    /// 4.09.
    pub const CONFLICT: Code = Code::new(4, 9);
    /// 4.12.
    pub const PRECONDITION_FAILED: Code = Code::new(4, 12);
    /// 4.13.
    pub const REQUEST_ENTITY_TOO_LARGE: Code = Code::new(4, 13);
    /// 4.15.
    pub const UNSUPPORTED_CONTENT_FORMAT: Code = Code::new(4, 15);
    /// 4.22.
    pub const UNPROCESSABLE_ENTITY: Code = Code::new(4, 22);
    /// 4.29: Max-Age is the time to wait before a retry.
    pub const TOO_MANY_REQUESTS: Code = Code::new(4, 29);
    /// 5.00.
    pub const INTERNAL_SERVER_ERROR: Code = Code::new(5, 0);
    /// 5.01.
    pub const NOT_IMPLEMENTED: Code = Code::new(5, 1);
    /// 5.02.
    pub const BAD_GATEWAY: Code = Code::new(5, 2);
    /// 5.03: Max-Age is the time to wait before a retry.
    pub const SERVICE_UNAVAILABLE: Code = Code::new(5, 3);
    /// 5.04.
    pub const GATEWAY_TIMEOUT: Code = Code::new(5, 4);
    /// 5.05.
    pub const PROXYING_NOT_SUPPORTED: Code = Code::new(5, 5);

    /// Combines class (0 to 7) and detail (0 to 31); higher bits are cut off.
    pub const fn new(class: u8, detail: u8) -> Code {
        Code((class & 0b111) << 5 | (detail & 0b1_1111))
    }

    /// Reads the code's byte of the header.
    pub const fn from_byte(byte: u8) -> Code {
        Code(byte)
    }

    /// Returns the code's byte of the header.
    pub const fn as_byte(self) -> u8 {
        self.0
    }

    /// Returns the digit before the point.
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// Returns the two digits after the point.
    pub const fn detail(self) -> u8 {
        self.0 & 0b1_1111
    }

    /// Returns whether this is a method, known to us or not.
    pub const fn is_request(self) -> bool {
        self.class() == 0 && self.detail() != 0
    }

    /// Returns whether this is a response of any class: RFC 7252 assigns 2.00 to 5.31 to them.
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2..=5)
    }

    /// Returns whether this is a response of class 2.
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// Writes the code without its point: `205`.
    pub fn digits(self) -> String {
        format!("{}{:02}", self.class(), self.detail())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.class(), self.detail())
    }
}
