//! How is a record protected? RFC 5246 section 6.2.3.3 with CCM (RFC 6655) and GCM (RFC 5288), and
//! the additional data and inner plaintext of RFC 9146 section 5.
//!
//! The key schedule of AES is made again for each record: with the instructions of the processor it
//! costs less than the memory of a million of them.

use std::fmt;

use aes::Aes128Enc;
use aes_gcm::AesGcm;
use ccm::aead::consts::{U8, U12, U16};
use ccm::aead::{AeadInOut, KeyInit};
use ccm::{Ccm, Nonce};
use zeroize::Zeroize;

use super::{ContentType, PLAINTEXT_MAX, Record, VERSION};
use crate::cipher_suite::RecordCipher;
use crate::presentation::Writer;

type Ccm8 = Ccm<Aes128Enc, U8, U12>;
type Ccm16 = Ccm<Aes128Enc, U16, U12>;
type Gcm = AesGcm<Aes128Enc, U12>;

pub(crate) const KEY_LENGTH: usize = 16;
/// The part of the nonce that is not on the wire.
pub(crate) const SALT_LENGTH: usize = 4;
const EXPLICIT_NONCE_LENGTH: usize = 8;

/// RFC 9146 section 3; the first byte of the additional data has a length of one byte for it.
const CONNECTION_ID_MAX: usize = 255;
const ADDITIONAL_DATA_MAX: usize = 8 + 3 + 2 + 8 + CONNECTION_ID_MAX + 2;

/// What one side writes with and the other reads with.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct TrafficKey {
    pub(crate) key: [u8; KEY_LENGTH],
    pub(crate) salt: [u8; SALT_LENGTH],
}

/// A record does not belong to its session: its tag is wrong, or it is no record of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NotAuthentic;

impl TrafficKey {
    /// Appends a protected record, with the Connection ID of the peer unless that is empty.
    pub(crate) fn seal(
        &self,
        cipher: RecordCipher,
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
        out.push(outer as u8);
        out.put_u16(VERSION);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(connection_id);
        out.put_nested16(|out| {
            out.extend_from_slice(&number.to_be_bytes());
            let start = out.len();
            out.extend_from_slice(plaintext);
            if outer == ContentType::Cid {
                out.push(content_type as u8);
            }
            let inner = &mut out[start..];
            let additional =
                AdditionalData::new(outer, VERSION, number, connection_id, inner.len());
            let nonce = self.nonce(number.to_be_bytes());
            let mut tag = [0; 16];
            let tag = self.encrypt(cipher, &nonce, additional.bytes(), inner, &mut tag);
            out.extend_from_slice(tag);
        });
    }

    /// Appends the plaintext of a record and returns its type. If it is not authentic, nothing is
    /// appended.
    pub(crate) fn open(
        &self,
        cipher: RecordCipher,
        record: &Record<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ContentType, NotAuthentic> {
        let start = out.len();
        let opened = self.open_into(cipher, record, out);
        if opened.is_err() {
            out.truncate(start);
        }
        opened
    }

    fn open_into(
        &self,
        cipher: RecordCipher,
        record: &Record<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ContentType, NotAuthentic> {
        let (explicit, sealed) = record.fragment.split_first_chunk().ok_or(NotAuthentic)?;
        let length = sealed.len().checked_sub(cipher.tag_length());
        let (inner, tag) = sealed.split_at(length.ok_or(NotAuthentic)?);
        // One more for the type that is inside a record with a Connection ID.
        if inner.len() > PLAINTEXT_MAX + 1 {
            return Err(NotAuthentic);
        }
        let additional = AdditionalData::new(
            record.content_type,
            record.version,
            record.number(),
            record.connection_id,
            inner.len(),
        );
        let start = out.len();
        out.extend_from_slice(inner);
        let nonce = self.nonce(*explicit);
        self.decrypt(cipher, &nonce, additional.bytes(), &mut out[start..], tag)?;
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
            | ContentType::ApplicationData => Ok(content_type),
        }
    }

    fn nonce(&self, explicit: [u8; EXPLICIT_NONCE_LENGTH]) -> Nonce<U12> {
        let mut nonce = Nonce::<U12>::default();
        nonce[..SALT_LENGTH].copy_from_slice(&self.salt);
        nonce[SALT_LENGTH..].copy_from_slice(&explicit);
        nonce
    }

    fn encrypt<'t>(
        &self,
        cipher: RecordCipher,
        nonce: &Nonce<U12>,
        additional: &[u8],
        inner: &mut [u8],
        tag: &'t mut [u8; 16],
    ) -> &'t [u8] {
        const FITS: &str = "a record is shorter than the bounds of the cipher";
        let key = (&self.key).into();
        let tag = &mut tag[..cipher.tag_length()];
        let inner = inner.into();
        match cipher {
            RecordCipher::Ccm8 => {
                let made = Ccm8::new(key).encrypt_inout_detached(nonce, additional, inner);
                tag.copy_from_slice(&made.expect(FITS));
            }
            RecordCipher::Ccm => {
                let made = Ccm16::new(key).encrypt_inout_detached(nonce, additional, inner);
                tag.copy_from_slice(&made.expect(FITS));
            }
            RecordCipher::Gcm => {
                let made = Gcm::new(key).encrypt_inout_detached(nonce, additional, inner);
                tag.copy_from_slice(&made.expect(FITS));
            }
        }
        tag
    }

    fn decrypt(
        &self,
        cipher: RecordCipher,
        nonce: &Nonce<U12>,
        additional: &[u8],
        inner: &mut [u8],
        tag: &[u8],
    ) -> Result<(), NotAuthentic> {
        let key = (&self.key).into();
        let inner = inner.into();
        let opened = match cipher {
            RecordCipher::Ccm8 => {
                let tag = tag.try_into().map_err(|_| NotAuthentic)?;
                Ccm8::new(key).decrypt_inout_detached(nonce, additional, inner, tag)
            }
            RecordCipher::Ccm => {
                let tag = tag.try_into().map_err(|_| NotAuthentic)?;
                Ccm16::new(key).decrypt_inout_detached(nonce, additional, inner, tag)
            }
            RecordCipher::Gcm => {
                let tag = tag.try_into().map_err(|_| NotAuthentic)?;
                Gcm::new(key).decrypt_inout_detached(nonce, additional, inner, tag)
            }
        };
        opened.map_err(|_| NotAuthentic)
    }
}

impl Drop for TrafficKey {
    fn drop(&mut self) {
        self.key.zeroize();
        self.salt.zeroize();
    }
}

impl fmt::Debug for TrafficKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrafficKey(..)")
    }
}

/// What a record authenticates beyond its plaintext, on the stack.
pub(crate) struct AdditionalData {
    bytes: [u8; ADDITIONAL_DATA_MAX],
    length: usize,
}

impl AdditionalData {
    /// RFC 5246 section 6.2.3.3 without, RFC 9146 section 5.3 with a Connection ID.
    pub(crate) fn new(
        outer: ContentType,
        version: u16,
        number: u64,
        connection_id: &[u8],
        inner_length: usize,
    ) -> Self {
        let mut data = Self {
            bytes: [0; ADDITIONAL_DATA_MAX],
            length: 0,
        };
        let inner_length = (inner_length as u16).to_be_bytes();
        if outer != ContentType::Cid {
            data.put(&number.to_be_bytes());
            data.put(&[outer as u8]);
            data.put(&version.to_be_bytes());
            data.put(&inner_length);
            return data;
        }
        data.put(&[0xff; 8]);
        data.put(&[outer as u8, connection_id.len() as u8, outer as u8]);
        data.put(&version.to_be_bytes());
        data.put(&number.to_be_bytes());
        data.put(connection_id);
        data.put(&inner_length);
        data
    }

    pub(crate) fn bytes(&self) -> &[u8] {
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
    use ccm::aead::consts::U13;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::hex::hex;
    use crate::presentation::Reader;

    const CIPHERS: [RecordCipher; 3] = [RecordCipher::Ccm8, RecordCipher::Ccm, RecordCipher::Gcm];

    fn traffic_key() -> TrafficKey {
        let mut key = [0; KEY_LENGTH];
        (0..).zip(&mut key).for_each(|(byte, place)| *place = byte);
        TrafficKey {
            key,
            salt: [0xa0, 0xa1, 0xa2, 0xa3],
        }
    }

    /// RFC 3610 section 8, packet vector 1: a tag of 8 bytes.
    #[test]
    fn ccm_with_a_short_tag_gives_the_known_answer() {
        let key: [u8; 16] = hex("c0c1c2c3c4c5c6c7c8c9cacbcccdcecf").try_into().unwrap();
        let nonce = hex("00000003020100a0a1a2a3a4a5");
        let nonce: &Nonce<U13> = nonce[..].try_into().unwrap();
        let mut data = hex("08090a0b0c0d0e0f101112131415161718191a1b1c1d1e");
        let tag = Ccm::<Aes128Enc, U8, U13>::new(&key.into())
            .encrypt_inout_detached(nonce, &hex("0001020304050607"), data.as_mut_slice().into())
            .unwrap();
        assert_eq!(data, hex("588c979a61c663d2f066d0c2c0f989806d5f6b61dac384"));
        assert_eq!(tag[..], hex("17e8d12cfdf926e0"));
    }

    /// Made with the AEADs of OpenSSL 3 and the additional data of the standards.
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
        ] {
            let number = 0x0001_0000_0000_0005;
            let content_type = ContentType::ApplicationData;
            let mut made = Vec::new();
            let connection_id = hex(connection_id);
            traffic_key().seal(
                cipher,
                content_type,
                number,
                &connection_id,
                &plain,
                &mut made,
            );
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
            let key = traffic_key();
            let number = 0x0001_0000_0000_0007;
            let mut bytes = Vec::new();
            key.seal(cipher, ContentType::Handshake, number, &connection_id, &plain, &mut bytes);
            let open = |bytes: &[u8]| {
                let mut reader = Reader::new(bytes);
                let record = Record::decode(&mut reader, connection_id.len()).ok()?;
                let mut out = vec![9];
                let opened = key.open(cipher, &record, &mut out).ok();
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
        let key = traffic_key();
        let number = 0x0001_0000_0000_0007;
        let inner = [&b"content"[..], &[23, 0, 0, 0]].concat();
        // Sealed as the type 0 of a longer content, which is the same as padding.
        for (length, expected) in [(inner.len(), Some(&b"content"[..])), (0, None)] {
            let additional = AdditionalData::new(ContentType::Cid, VERSION, number, &[1], length);
            let mut plain = inner[..length].to_vec();
            let mut tag = [0; 16];
            let nonce = key.nonce(number.to_be_bytes());
            let data = additional.bytes();
            let tag = key.encrypt(RecordCipher::Ccm8, &nonce, data, &mut plain, &mut tag);
            let fragment = [&number.to_be_bytes()[..], &plain, tag].concat();
            let record = Record {
                content_type: ContentType::Cid,
                version: VERSION,
                epoch: 1,
                sequence: 7,
                connection_id: &[1],
                fragment: &fragment,
            };
            let mut out = Vec::new();
            let opened = key.open(RecordCipher::Ccm8, &record, &mut out);
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
