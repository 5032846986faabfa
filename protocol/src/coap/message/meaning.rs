//! What do the options of a message mean? RFC 7252 section 5.10, RFC 7641 section 2 and RFC 7959
//! sections 2.1 and 4.

use super::Message;
use crate::coap::block::Block;
use crate::coap::content::ContentFormat;
use crate::coap::option;

const OBSERVE_MAX: u32 = 0xFF_FFFF;

impl Message {
    /// Adds an option, after those of the same number.
    ///
    /// # Panics
    ///
    /// If the value is longer than a datagram can be.
    pub fn with_option(mut self, number: u16, value: &[u8]) -> Message {
        self.options.add(number, value);
        self
    }

    /// Sets the critical option that was left out because it is misused: the encoded message does
    /// not have it.
    pub fn with_misused_option(mut self, number: Option<u16>) -> Message {
        self.options.set_misused(number);
        self
    }

    /// Adds segments to the path of the request.
    pub fn with_uri_path(self, segments: impl IntoIterator<Item = impl AsRef<str>>) -> Message {
        self.with_texts(option::URI_PATH, segments)
    }

    /// Adds arguments to the request, such as `lt=300`.
    pub fn with_uri_query(self, queries: impl IntoIterator<Item = impl AsRef<str>>) -> Message {
        self.with_texts(option::URI_QUERY, queries)
    }

    /// Adds segments to the path of a created resource.
    pub fn with_location_path(
        self,
        segments: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Message {
        self.with_texts(option::LOCATION_PATH, segments)
    }

    /// Sets the payload's format.
    pub fn with_content_format(self, format: ContentFormat) -> Message {
        self.with_number(option::CONTENT_FORMAT, format.0.into())
    }

    /// Sets the accepted format.
    pub fn with_accept(self, format: ContentFormat) -> Message {
        self.with_number(option::ACCEPT, format.0.into())
    }

    /// Sets Observe: 0 and 1 in a request, 24 bits of sequence in a notification.
    pub fn with_observe(self, value: u32) -> Message {
        self.with_number(option::OBSERVE, value & OBSERVE_MAX)
    }

    /// Sets how long a response is valid; with an error, the time to wait before a retry.
    pub fn with_max_age(self, max_age_s: u32) -> Message {
        self.with_number(option::MAX_AGE, max_age_s)
    }

    /// Sets the Block1 option.
    pub fn with_block1(self, block: Block) -> Message {
        self.with_number(option::BLOCK1, block.value())
    }

    /// Sets the Block2 option.
    pub fn with_block2(self, block: Block) -> Message {
        self.with_number(option::BLOCK2, block.value())
    }

    /// Sets the size of a request's whole body; in a 4.13, the largest accepted size.
    pub fn with_size1(self, bytes: u32) -> Message {
        self.with_number(option::SIZE1, bytes)
    }

    /// Sets the size of a response's whole body; in a request, 0 asks for it.
    pub fn with_size2(self, bytes: u32) -> Message {
        self.with_number(option::SIZE2, bytes)
    }

    /// Adds the version of the body.
    ///
    /// # Panics
    ///
    /// If the value is longer than a datagram can be.
    pub fn with_etag(self, etag: &[u8]) -> Message {
        self.with_option(option::ETAG, etag)
    }

    /// Removes all options of a number.
    pub fn without_option(mut self, number: u16) -> Message {
        self.options.remove(number);
        self
    }

    /// Sets the payload.
    pub fn with_payload(mut self, payload: impl Into<Vec<u8>>) -> Message {
        self.payload = payload.into();
        self
    }

    fn with_texts(
        mut self,
        number: u16,
        texts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Message {
        for text in texts {
            self.options.add(number, text.as_ref().as_bytes());
        }
        self
    }

    fn with_number(mut self, option: u16, number: u32) -> Message {
        self.options.set_number(option, number);
        self
    }

    /// Iterates over all options in the order of their numbers.
    pub fn options(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.options.iter()
    }

    /// Iterates over the segments of the request's path.
    pub fn uri_path(&self) -> impl Iterator<Item = &str> {
        self.texts(option::URI_PATH)
    }

    /// Iterates over the arguments of the request.
    pub fn uri_query(&self) -> impl Iterator<Item = &str> {
        self.texts(option::URI_QUERY)
    }

    /// Iterates over the segments of a created resource's path.
    pub fn location_path(&self) -> impl Iterator<Item = &str> {
        self.texts(option::LOCATION_PATH)
    }

    /// Returns the payload's format.
    pub fn content_format(&self) -> Option<ContentFormat> {
        self.format(option::CONTENT_FORMAT)
    }

    /// Returns the accepted format.
    pub fn accept(&self) -> Option<ContentFormat> {
        self.format(option::ACCEPT)
    }

    /// Returns the 24 bits of Observe.
    pub fn observe(&self) -> Option<u32> {
        self.number(option::OBSERVE)
    }

    /// Returns for how many seconds a response is valid.
    pub fn max_age(&self) -> Option<u32> {
        self.number(option::MAX_AGE)
    }

    /// Returns which part of a request's body this is.
    pub fn block1(&self) -> Option<Block> {
        self.number(option::BLOCK1).map(Block::from_value)
    }

    /// Returns which part of a response's body this is, or which is requested.
    pub fn block2(&self) -> Option<Block> {
        self.number(option::BLOCK2).map(Block::from_value)
    }

    /// Returns the size of a request's whole body.
    pub fn size1(&self) -> Option<u32> {
        self.number(option::SIZE1)
    }

    /// Returns the size of a response's whole body; in a request, 0 asks for it.
    pub fn size2(&self) -> Option<u32> {
        self.number(option::SIZE2)
    }

    /// Returns the version of the body: in a response, the first ETag is the only one.
    pub fn etag(&self) -> Option<&[u8]> {
        self.options.values_of(option::ETAG).next()
    }

    /// Returns the first critical option that was left out because it is misused.
    pub fn misused_option(&self) -> Option<u16> {
        self.options.misused()
    }

    /// Returns the first critical option that is not among the known ones, or that is misused. A
    /// request is then answered with 4.02, a response rejected (section 5.4.1).
    pub fn unknown_critical_option(&self, known: &[u16]) -> Option<u16> {
        self.options.misused().or_else(|| {
            let mut numbers = self.options.iter().map(|(number, _)| number);
            numbers.find(|number| option::is_critical(*number) && !known.contains(number))
        })
    }

    fn texts(&self, number: u16) -> impl Iterator<Item = &str> {
        self.options
            .values_of(number)
            .filter_map(|value| std::str::from_utf8(value).ok())
    }

    fn format(&self, option: u16) -> Option<ContentFormat> {
        self.number(option)
            .and_then(|number| u16::try_from(number).ok())
            .map(ContentFormat)
    }

    fn number(&self, option: u16) -> Option<u32> {
        self.options
            .values_of(option)
            .next()
            .map(option::number_from)
    }
}
