//! How are numbers and vectors read and written? The presentation language of RFC 5246 section 4.

/// The bytes are not what the standard describes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Malformed;

/// Reads big-endian numbers and length-prefixed vectors from received bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u24(&mut self) -> Result<u32, Malformed> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_be_bytes([0, a, b, c]))
    }

    pub(crate) fn u48(&mut self) -> Result<u64, Malformed> {
        let [a, b, c, d, e, f] = self.array()?;
        Ok(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A vector with a length of one byte.
    pub(crate) fn vector8(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// A vector with a length of two bytes.
    pub(crate) fn vector16(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u16()?;
        self.take(length.into())
    }

    /// A vector with a length of three bytes.
    pub(crate) fn vector24(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u24()?;
        self.take(usize::try_from(length).map_err(|_| Malformed)?)
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Nothing may follow.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}

/// Writes what [`Reader`] reads. Lengths are of our own making and fit their prefix.
pub(crate) trait Writer {
    fn put_u16(&mut self, value: u16);
    fn put_u24(&mut self, value: u32);
    fn put_u48(&mut self, value: u64);
    fn put_vector8(&mut self, bytes: &[u8]);
    fn put_vector16(&mut self, bytes: &[u8]);
    /// A vector with a length of two bytes whose content is written by `content`.
    fn put_nested16(&mut self, content: impl FnOnce(&mut Vec<u8>));
}

impl Writer for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u24(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes()[1..]);
    }

    fn put_u48(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes()[2..]);
    }

    fn put_vector8(&mut self, bytes: &[u8]) {
        self.push(u8::try_from(bytes.len()).expect("a short vector of ours"));
        self.extend_from_slice(bytes);
    }

    fn put_vector16(&mut self, bytes: &[u8]) {
        self.put_u16(u16::try_from(bytes.len()).expect("a vector of ours"));
        self.extend_from_slice(bytes);
    }

    fn put_nested16(&mut self, content: impl FnOnce(&mut Vec<u8>)) {
        let start = self.len();
        self.put_u16(0);
        content(self);
        let length = u16::try_from(self.len() - start - 2).expect("a vector of ours");
        self[start..start + 2].copy_from_slice(&length.to_be_bytes());
    }
}
