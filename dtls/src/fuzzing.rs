//! Which laws hold for the decoders, whatever the bytes are? For the fuzz targets of the workspace;
//! not a part of the API.

use crate::alert::Alert;
use crate::handshake::certificate::{self, CertificateType, ShownKey};
use crate::handshake::extension::Extensions;
use crate::handshake::hello::{self, ClientHello, ServerHello};
use crate::handshake::message::{Fragment, MessageType};
use crate::handshake::resumption::Resumable;
use crate::handshake::ticket;
use crate::key_agreement;
use crate::key_schedule::Randoms;
use crate::moment::Timestamp;
use crate::presentation::Reader;
use crate::record::{self, ContentType, Record};
use crate::session::Session;

/// Reads a datagram as records. A record without protection is written as it was read.
///
/// # Panics
///
/// If it is not.
pub fn records(datagram: &[u8]) -> bool {
    let mut reader = Reader::new(datagram);
    let mut has_record = false;
    while let Ok(record) = Record::decode(&mut reader, 7) {
        has_record = true;
        let is_plain = record.epoch == 0 && record.content_type != ContentType::Cid;
        if is_plain && record.version == record::VERSION {
            let mut written = Vec::new();
            let (content_type, sequence) = (record.content_type, record.sequence);
            record::encode_plaintext(content_type, sequence, record.fragment, &mut written);
            let again = Record::decode(&mut Reader::new(&written), 7).expect("a record of ours");
            assert_eq!(again.fragment, record.fragment);
            assert_eq!(again.number(), record.number());
        }
        if record.content_type == ContentType::Alert
            && let Ok(alert) = Alert::decode(record.fragment)
        {
            assert_eq!(alert.encode(), record.fragment);
        }
    }
    has_record
}

/// Reads the fragments of handshake messages, and those that are whole as what they say they are.
/// What was read and written is read as the same again.
///
/// # Panics
///
/// If it is not.
pub fn handshake_messages(content: &[u8]) -> bool {
    let mut reader = Reader::new(content);
    let mut is_read = false;
    while let Ok(fragment) = Fragment::decode(&mut reader) {
        let mut written = Vec::new();
        fragment.encode(&mut written);
        let again = Fragment::decode(&mut Reader::new(&written)).expect("a fragment of ours");
        assert_eq!(again.bytes, fragment.bytes);
        if fragment.offset == 0 && fragment.bytes.len() == fragment.length as usize {
            is_read |= body(fragment.message_type, fragment.bytes);
        }
    }
    is_read
}

fn body(message_type: MessageType, body: &[u8]) -> bool {
    match message_type {
        MessageType::ClientHello => match ClientHello::decode(body) {
            Ok(hello) => {
                let written = hello.encode();
                let again = ClientHello::decode(&written).expect("a hello of ours");
                assert_eq!(again.encode(), written);
                assert_eq!(again.start.cookie, hello.start.cookie);
                assert_eq!(again.cipher_suites, hello.cipher_suites);
                same(&again.extensions, &hello.extensions);
                true
            }
            Err(_) => false,
        },
        MessageType::ServerHello => match ServerHello::decode(body) {
            Ok(hello) => {
                let written = hello.encode();
                let again = ServerHello::decode(&written).expect("a hello of ours");
                assert_eq!(again.cipher_suite, hello.cipher_suite);
                same(&again.extensions, &hello.extensions);
                true
            }
            Err(_) => false,
        },
        MessageType::HelloVerifyRequest => hello::decode_hello_verify_request(body).is_ok(),
        MessageType::NewSessionTicket => ticket::decode_new_session_ticket(body).is_ok(),
        MessageType::ServerKeyExchange => {
            let mut reader = Reader::new(body);
            let is_behind_hint =
                reader.vector16().is_ok() && key_agreement::decode_parameters(&mut reader).is_ok();
            let randoms = Randoms {
                client: [0; 32],
                server: [0; 32],
            };
            let _ = certificate::decode_signed_parameters(&[], &randoms, body);
            is_behind_hint || key_agreement::decode_parameters(&mut Reader::new(body)).is_ok()
        }
        MessageType::Certificate => {
            if let Ok(chain) = certificate::decode_chain(body) {
                let _ = chain.names();
                let _ = chain.verify(&[chain.own()], Timestamp::from_ms(0));
            }
            let types = [CertificateType::X509, CertificateType::RawPublicKey];
            types.map(|it| ShownKey::decode(it, body).is_ok()) != [false, false]
        }
        MessageType::CertificateVerify => certificate::decode_certificate_verify(body).is_ok(),
        MessageType::HelloRequest
        | MessageType::CertificateRequest
        | MessageType::ServerHelloDone
        | MessageType::ClientKeyExchange
        | MessageType::Finished => false,
    }
}

fn same(one: &Extensions<'_>, other: &Extensions<'_>) {
    assert_eq!(one.connection_id, other.connection_id);
    assert_eq!(one.session_ticket, other.session_ticket);
    assert_eq!(one.max_fragment_length, other.max_fragment_length);
    assert_eq!(one.record_size_limit, other.record_size_limit);
    assert_eq!(one.extended_master_secret, other.extended_master_secret);
    assert_eq!(one.renegotiation_info, other.renegotiation_info);
}

/// Reads what is sealed in a ticket, and what an export contains: both are trusted, and neither
/// may lead to a panic.
///
/// # Panics
///
/// If what was read and written is not the same.
pub fn kept_sessions(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    let ticket = Resumable::decode(&mut reader);
    if let Ok(session) = &ticket {
        let mut written = Vec::new();
        session.encode(&mut written);
        assert!(bytes.starts_with(&written));
    }
    let session = Session::decode(&mut Reader::new(bytes));
    if let Ok(session) = &session {
        let mut written = Vec::new();
        session.encode(&mut written);
        assert!(bytes.starts_with(&written));
    }
    ticket.is_ok() || session.is_ok()
}
