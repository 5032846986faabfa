//! How is a record protected? With the additional data and the inner plaintext of RFC 9146 section
//! 5, by one of three ways: [`aead`], [`encrypt_then_mac`] and [`mac_then_encrypt`].
//!
//! The key schedule of AES is made again for each record: with the instructions of the processor it
//! costs less than the memory of a million of them.

mod aead;
mod cbc_key;
mod encrypt_then_mac;
mod mac_then_encrypt;

use std::fmt;

use aead::{Aead, AeadKey};
use cbc_key::CbcKey;

use super::{ContentType, PLAINTEXT_MAX, Record, VERSION};
use crate::cipher_suite::RecordCipher;
use crate::presentation::Writer;

/// RFC 9146 section 3; the first byte of the additional data has a length of one byte for it.
const CONNECTION_ID_MAX: usize = 255;
const ADDITIONAL_DATA_MAX: usize = 8 + 3 + 2 + 8 + CONNECTION_ID_MAX + 2;

/// The longest of what is encrypted: one more for the type that is inside a record with a
/// Connection ID.
const INNER_MAX: usize = PLAINTEXT_MAX + 1;

/// The longest key block of a session.
pub(crate) const KEY_BLOCK_MAX: usize = 2 * (cbc_key::MAC_KEY_LENGTH + cbc_key::KEY_LENGTH);

/// What one side writes with and the other reads with.
#[derive(Clone, Eq, PartialEq)]
pub(crate) enum TrafficKey {
    Aead(AeadKey),
    /// Few sessions have it, and it is longer than the other.
    Cbc(Box<CbcKey>),
    BareCbc(Box<CbcKey>),
}

/// A record does not belong to its session: its tag is wrong, or it is no record of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NotAuthentic;

impl RecordCipher {
    /// The lengths of the two parts of a key, in the order of the key block (RFC 5246 section 6.3).
    pub(crate) const fn key_parts(self) -> [usize; 2] {
        match self {
            Self::Ccm8 | Self::Ccm | Self::Gcm => [aead::KEY_LENGTH, aead::SALT_LENGTH],
            Self::Cbc | Self::BareCbc => [cbc_key::MAC_KEY_LENGTH, cbc_key::KEY_LENGTH],
        }
    }

    /// The most that the fragment of a record is longer than what is encrypted in it.
    pub(crate) const fn overhead_max(self) -> usize {
        match self {
            Self::Ccm8 => aead::overhead(Aead::Ccm8),
            Self::Ccm => aead::overhead(Aead::Ccm),
            Self::Gcm => aead::overhead(Aead::Gcm),
            Self::Cbc | Self::BareCbc => cbc_key::OVERHEAD_MAX,
        }
    }

    /// The cipher where the peers do not agree on encrypt_then_mac (RFC 7366).
    pub(crate) const fn without_encrypt_then_mac(self) -> Self {
        match self {
            Self::Cbc | Self::BareCbc => Self::BareCbc,
            Self::Ccm8 | Self::Ccm | Self::Gcm => self,
        }
    }
}

impl TrafficKey {
    /// A key of parts with the lengths of [`RecordCipher::key_parts`].
    pub(crate) fn new(cipher: RecordCipher, parts: [&[u8]; 2]) -> Self {
        match cipher {
            RecordCipher::Ccm8 => Self::Aead(AeadKey::new(Aead::Ccm8, parts)),
            RecordCipher::Ccm => Self::Aead(AeadKey::new(Aead::Ccm, parts)),
            RecordCipher::Gcm => Self::Aead(AeadKey::new(Aead::Gcm, parts)),
            RecordCipher::Cbc => Self::Cbc(Box::new(CbcKey::new(parts))),
            RecordCipher::BareCbc => Self::BareCbc(Box::new(CbcKey::new(parts))),
        }
    }

    /// The parts that the key was made of.
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        match self {
            Self::Aead(key) => key.parts(),
            Self::Cbc(key) | Self::BareCbc(key) => key.parts(),
        }
    }

    /// Whether it authenticates before it encrypts.
    pub(crate) fn is_bare_cbc(&self) -> bool {
        match self {
            Self::BareCbc(_) => true,
            Self::Aead(_) | Self::Cbc(_) => false,
        }
    }

    /// Appends a protected record, with the Connection ID of the peer unless that is empty.
    pub(crate) fn seal(
        &self,
        content_type: ContentType,
        number: u64,
        connection_id: &[u8],
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) {
        let outer = match connection_id {
            [] => content_type,
            _ => ContentType::Cid,
        };
        let header = Header {
            outer,
            version: VERSION,
            number,
            connection_id,
        };
        let content_type = [content_type as u8];
        let inner_type: &[u8] = match outer {
            ContentType::Cid => &content_type,
            ContentType::ChangeCipherSpec
            | ContentType::Alert
            | ContentType::Handshake
            | ContentType::ApplicationData
            | ContentType::ReturnRoutabilityCheck => &[],
        };
        out.push(outer as u8);
        out.put_u16(VERSION);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(connection_id);
        out.put_nested16(|out| self.seal_content(&header, [plaintext, inner_type], out));
    }

    fn seal_content(&self, header: &Header<'_>, content: [&[u8]; 2], out: &mut Vec<u8>) {
        match self {
            Self::Aead(key) => key.seal(header, content, out),
            Self::Cbc(key) => encrypt_then_mac::seal(key, header, content, out),
            Self::BareCbc(key) => mac_then_encrypt::seal(key, header, content, out),
        }
    }

    /// Appends the plaintext of a record and returns its type. If it is not authentic, nothing is
    /// appended.
    pub(crate) fn open(
        &self,
        record: &Record<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ContentType, NotAuthentic> {
        let start = out.len();
        let opened = self.open_into(record, out);
        if opened.is_err() {
            out.truncate(start);
        }
        opened
    }

    fn open_into(
        &self,
        record: &Record<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ContentType, NotAuthentic> {
        let start = out.len();
        let header = Header::of(record);
        match self {
            Self::Aead(key) => key.open(&header, record.fragment, out)?,
            Self::Cbc(key) => encrypt_then_mac::open(key, &header, record.fragment, out)?,
            Self::BareCbc(key) => mac_then_encrypt::open(key, &header, record.fragment, out)?,
        }
        if record.content_type != ContentType::Cid {
            return Ok(record.content_type);
        }
        // RFC 9146 section 4: content, type, any number of zeros.
        let end = out[start..].iter().rposition(|byte| *byte != 0);
        let end = start + end.ok_or(NotAuthentic)?;
        let content_type = ContentType::from_number(out[end]).ok_or(NotAuthentic)?;
        out.truncate(end);
        match content_type {
            ContentType::Cid => Err(NotAuthentic),
            ContentType::ChangeCipherSpec
            | ContentType::Alert
            | ContentType::Handshake
            | ContentType::ApplicationData
            | ContentType::ReturnRoutabilityCheck => Ok(content_type),
        }
    }
}

impl fmt::Debug for TrafficKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrafficKey(..)")
    }
}

/// What precedes the fragment of a record.
#[derive(Clone, Copy)]
pub(super) struct Header<'a> {
    outer: ContentType,
    version: u16,
    number: u64,
    connection_id: &'a [u8],
}

impl<'a> Header<'a> {
    pub(super) fn of(record: &Record<'a>) -> Self {
        Self {
            outer: record.content_type,
            version: record.version,
            number: record.number(),
            connection_id: record.connection_id,
        }
    }
}

/// What a record authenticates beyond its plaintext, on the stack.
pub(super) struct AdditionalData {
    bytes: [u8; ADDITIONAL_DATA_MAX],
    length: usize,
}

impl AdditionalData {
    /// RFC 5246 section 6.2.3.3 without, RFC 9146 section 5 with a Connection ID.
    pub(super) fn new(header: &Header<'_>, length: usize) -> Self {
        let Header {
            outer,
            version,
            number,
            connection_id,
        } = *header;
        let mut data = Self {
            bytes: [0; ADDITIONAL_DATA_MAX],
            length: 0,
        };
        let length = (length as u16).to_be_bytes();
        if outer != ContentType::Cid {
            data.put(&number.to_be_bytes());
            data.put(&[outer as u8]);
            data.put(&version.to_be_bytes());
            data.put(&length);
            return data;
        }
        data.put(&[0xff; 8]);
        data.put(&[outer as u8, connection_id.len() as u8, outer as u8]);
        data.put(&version.to_be_bytes());
        data.put(&number.to_be_bytes());
        data.put(connection_id);
        data.put(&length);
        data
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn put(&mut self, part: &[u8]) {
        let end = self.length + part.len();
        self.bytes[self.length..end].copy_from_slice(part);
        self.length = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::hex::hex;
    use crate::presentation::Reader;

    const CIPHERS: [RecordCipher; 5] = [
        RecordCipher::Ccm8,
        RecordCipher::Ccm,
        RecordCipher::Gcm,
        RecordCipher::Cbc,
        RecordCipher::BareCbc,
    ];

    fn traffic_key(cipher: RecordCipher) -> TrafficKey {
        let [first, second] = cipher.key_parts();
        let first: Vec<u8> = (0..).take(first).collect();
        let second: Vec<u8> = (0xa0..).take(second).collect();
        TrafficKey::new(cipher, [&first, &second])
    }

    /// Made with the ciphers of OpenSSL 3 and the additional data of the standards.
    #[test]
    fn records_are_those_of_another_implementation() {
        let plain = hex("4401c0deadbeefffb474696d65");
        for (cipher, connection_id, expected) in [
            (
                RecordCipher::Ccm8,
                "",
                "17fefd0001000000000005001d000100000000000568fccee902182bcca8433e88f635160a106a518\
                 fa1",
            ),
            (
                RecordCipher::Ccm8,
                "c1d2e3",
                "19fefd0001000000000005c1d2e3001e000100000000000568fccee902182bcca8433e88f63d1b38e\
                 4cf3db27194",
            ),
            (
                RecordCipher::Ccm,
                "",
                "17fefd00010000000000050025000100000000000568fccee902182bcca8433e88f66efbb94226505\
                 f48f5dde8df4cf186ae",
            ),
            (
                RecordCipher::Ccm,
                "c1d2e3",
                "19fefd0001000000000005c1d2e30026000100000000000568fccee902182bcca8433e88f63d1712f\
                 596d19d52ab6c73f14f2ba348be",
            ),
            (
                RecordCipher::Gcm,
                "",
                "17fefd000100000000000500250001000000000005880b91588929056b4031da92115eb785c96c0cb\
                 db7453a66e2310077da",
            ),
            (
                RecordCipher::Gcm,
                "c1d2e3",
                "19fefd0001000000000005c1d2e300260001000000000005880b91588929056b4031da92110a9e676\
                 31c03d3ec5cd3a74b0dac277324",
            ),
            (
                RecordCipher::Cbc,
                "",
                "17fefd000100000000000500401c299e31dddeb578893dc21ee2f5d3cc9d56a8df7bedf2de0e64b\
                 751413979ed2cb896580195e9be460bb2660efd2e0e78240a31c6ee862b911cb8c937aad6be",
            ),
            (
                RecordCipher::Cbc,
                "c1d2e3",
                "19fefd0001000000000005c1d2e300401c299e31dddeb578893dc21ee2f5d3cc7aa59ea9ad55098\
                 7796f48f7db91cfd37cd96bc128a5072260c454f1c6a1cfbbea68fcd8859eca2a7b4345fad7d66d\
                 31",
            ),
            (
                RecordCipher::BareCbc,
                "",
                "17fefd000100000000000500401c299e31dddeb578893dc21ee2f5d3cc64ea8785e390d028a4b96\
                 171b93b68214f54ca53f929f7662bd02b41540da3c5aaab05c470307e3711401ee2efa8065b",
            ),
            (
                RecordCipher::BareCbc,
                "c1d2e3",
                "19fefd0001000000000005c1d2e300401c299e31dddeb578893dc21ee2f5d3ccc06e7ffbaad4698\
                 68f08d192ace806d6a87f711b5f8006df96ca45d1f383378550c9f22679c562553a72204fffbae4\
                 5b",
            ),
        ] {
            let number = 0x0001_0000_0000_0005;
            let content_type = ContentType::ApplicationData;
            let mut made = Vec::new();
            let connection_id = hex(connection_id);
            traffic_key(cipher).seal(content_type, number, &connection_id, &plain, &mut made);
            assert_eq!(made, hex(expected), "{cipher:?}");
        }
    }

    proptest! {
        #[test]
        fn a_record_opens_as_it_was_and_not_when_any_bit_of_it_is_changed(
            cipher in 0..CIPHERS.len(),
            connection_id in proptest::collection::vec(any::<u8>(), 0..9),
            plain in proptest::collection::vec(any::<u8>(), 0..80),
            bit in any::<proptest::sample::Index>(),
        ) {
            let cipher = CIPHERS[cipher];
            let key = traffic_key(cipher);
            let number = 0x0001_0000_0000_0007;
            let mut bytes = Vec::new();
            key.seal(ContentType::Handshake, number, &connection_id, &plain, &mut bytes);
            let open = |bytes: &[u8]| {
                let mut reader = Reader::new(bytes);
                let record = Record::decode(&mut reader, connection_id.len()).ok()?;
                let mut out = vec![9];
                let opened = key.open(&record, &mut out).ok();
                assert!(opened.is_some() || out == [9], "nothing is left of a forged record");
                opened.map(|content_type| (content_type, out.split_off(1)))
            };
            prop_assert_eq!(open(&bytes), Some((ContentType::Handshake, plain)));
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            // A longer record has no end; a shorter one is not authentic.
            prop_assert!(open(&bytes).is_none());
        }
    }

    #[test]
    fn padding_inside_a_record_is_removed() {
        let empty = Record {
            content_type: ContentType::Cid,
            version: VERSION,
            epoch: 1,
            sequence: 7,
            connection_id: &[1],
            fragment: &[],
        };
        for cipher in CIPHERS {
            let key = traffic_key(cipher);
            for (inner, expected) in [
                (&b"content\x17\0\0\0"[..], Some(&b"content"[..])),
                (b"", None),
            ] {
                let mut fragment = Vec::new();
                key.seal_content(&Header::of(&empty), [inner, &[]], &mut fragment);
                let record = Record {
                    fragment: &fragment,
                    ..empty
                };
                let mut out = Vec::new();
                let opened = key.open(&record, &mut out);
                match expected {
                    Some(content) => {
                        assert_eq!(opened, Ok(ContentType::ApplicationData));
                        assert_eq!(out, content);
                    }
                    None => assert_eq!(opened, Err(NotAuthentic), "a record without a type"),
                }
            }
        }
    }
}
