//! Are the records with a Connection ID of others read as they are meant?
//!
//! Both sides of the recording are foreign, and so is its suite, so only its keys are derived here:
//! records, fragments and additional data are read by the code of the crate.

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha384};

use super::protection::{AdditionalData, Header};
use super::{ContentType, Record};
use crate::handshake::hello::{ClientHelloStart, ServerHello};
use crate::handshake::message::{Fragment, HEADER_LENGTH, MessageType};
use crate::hex::hex;
use crate::key_schedule::psk_premaster;
use crate::presentation::Reader;

const RECORDING: &str = include_str!("../../tests/vectors/anjay_scandium_connection_id.hex");
const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const CONNECTION_ID_LENGTH: usize = 6;

#[test]
fn the_records_between_mbed_tls_and_scandium_are_authentic() {
    let lines = RECORDING.lines().filter(|line| !line.starts_with('#'));
    let datagrams: Vec<(&str, Vec<u8>)> = lines
        .map(|line| line.split_once(' ').expect("a side and a datagram"))
        .map(|(side, digits)| (side, hex(digits)))
        .collect();
    let keys = Keys::of(&datagrams);
    let mut contents = Vec::new();
    for (side, datagram) in &datagrams {
        for record in records(datagram).iter().filter(|record| record.epoch == 1) {
            contents.push((*side, keys.open(side, record)));
        }
    }
    let (server, client) = ("server", "client");
    let shape: Vec<(&str, u8, usize)> = contents
        .iter()
        .map(|(side, plain)| (*side, plain[0], plain.len()))
        .collect();
    // The type of the first byte: 20 is a Finished, others are CoAP messages.
    assert_eq!(shape[..2], [(client, 20, 24), (server, 20, 24)]);
    assert_eq!(shape.len(), 10);
    assert!(
        shape[2..].iter().all(|(_, first, _)| first >> 6 == 1),
        "CoAP version 1"
    );
    let register = &contents[2].1;
    let is_register = register.windows(8).any(|window| window == b"ep=ancid");
    assert!(is_register || register.windows(5).any(|window| window == b"ancid"));
}

struct Keys {
    client: ([u8; 32], [u8; 4]),
    server: ([u8; 32], [u8; 4]),
}

impl Keys {
    /// RFC 7627 and RFC 5246 with SHA-384.
    fn of(datagrams: &[(&str, Vec<u8>)]) -> Self {
        let mut transcript = Sha384::new();
        let (mut client_random, mut server_random) = ([0; 32], [0; 32]);
        for (_, datagram) in datagrams {
            for record in records(datagram) {
                if record.content_type != ContentType::Handshake || record.epoch != 0 {
                    continue;
                }
                let mut reader = Reader::new(record.fragment);
                let fragment = Fragment::decode(&mut reader).expect("a message");
                assert_eq!(
                    record.fragment.len(),
                    HEADER_LENGTH + fragment.length as usize
                );
                match fragment.message_type {
                    MessageType::HelloVerifyRequest => continue,
                    MessageType::ClientHello => {
                        let mut body = Reader::new(fragment.bytes);
                        let start = ClientHelloStart::decode(&mut body).expect("a hello");
                        if start.cookie.is_empty() {
                            continue;
                        }
                        client_random = start.random;
                    }
                    MessageType::ServerHello => {
                        let hello = ServerHello::decode(fragment.bytes).expect("a hello");
                        assert_eq!(hello.cipher_suite, 0x00a9);
                        let connection_id = hello.extensions.connection_id.expect("one");
                        assert_eq!(connection_id.len(), CONNECTION_ID_LENGTH);
                        server_random = hello.random;
                    }
                    MessageType::HelloRequest
                    | MessageType::NewSessionTicket
                    | MessageType::Certificate
                    | MessageType::ServerKeyExchange
                    | MessageType::CertificateRequest
                    | MessageType::ServerHelloDone
                    | MessageType::CertificateVerify
                    | MessageType::ClientKeyExchange
                    | MessageType::Finished => (),
                }
                transcript.update(record.fragment);
            }
        }
        let premaster = psk_premaster(&hex(KEY), None);
        let session_hash = transcript.finalize();
        let mut master = [0; 48];
        prf(
            &premaster,
            b"extended master secret",
            &session_hash,
            &mut master,
        );
        let mut block = [0; 72];
        let seed = [server_random, client_random].concat();
        prf(&master, b"key expansion", &seed, &mut block);
        let key = |at: usize| block[at..at + 32].try_into().expect("32 bytes");
        let salt = |at: usize| block[at..at + 4].try_into().expect("4 bytes");
        Self {
            client: (key(0), salt(64)),
            server: (key(32), salt(68)),
        }
    }

    fn open(&self, side: &str, record: &Record<'_>) -> Vec<u8> {
        let (key, salt) = if side == "client" {
            self.client
        } else {
            self.server
        };
        let (explicit, sealed) = record.fragment.split_at(8);
        let (inner, tag) = sealed.split_at(sealed.len() - 16);
        let additional = AdditionalData::new(&Header::of(record), inner.len());
        let nonce: [u8; 12] = [&salt, explicit].concat().try_into().expect("12 bytes");
        let mut plain = inner.to_vec();
        Aes256Gcm::new(&key.into())
            .decrypt_inout_detached(
                &Nonce::from(nonce),
                additional.bytes(),
                plain.as_mut_slice().into(),
                tag.try_into().expect("16 bytes"),
            )
            .expect("the record is authentic");
        if record.content_type == ContentType::Cid {
            // Mbed TLS pads to a multiple of 16 bytes.
            while plain.last() == Some(&0) {
                plain.pop();
            }
            let inner_type = plain.pop();
            assert!(matches!(inner_type, Some(22 | 23)), "{inner_type:?}");
        }
        plain
    }
}

fn records(datagram: &[u8]) -> Vec<Record<'_>> {
    let mut reader = Reader::new(datagram);
    let mut records = Vec::new();
    while !reader.is_empty() {
        let record = Record::decode(&mut reader, CONNECTION_ID_LENGTH);
        records.push(record.expect("a record"));
    }
    records
}

fn prf(secret: &[u8], label: &[u8], seed: &[u8], out: &mut [u8]) {
    let mac = |parts: &[&[u8]]| {
        let mut mac = Hmac::<Sha384>::new_from_slice(secret).expect("any key");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let mut a = mac(&[label, seed]);
    for chunk in out.chunks_mut(48) {
        let block = mac(&[&a, label, seed]);
        chunk.copy_from_slice(&block[..chunk.len()]);
        a = mac(&[&a]);
    }
}
