//! Which datagrams are messages, which are noise, and what do messages contain?

use protocol::coap::block::{Block, BlockSize};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::malformed::{MalformedMessage, MessageFault};
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::token::Token;

#[test]
fn a_malformed_header_is_reset_only_when_confirmable() {
    silence(b"", MessageFault::TooShort);
    silence(b"\x40", MessageFault::TooShort);
    silence(b"\x40\x01\x12", MessageFault::TooShort);
    silence(b"\x00\x01\x12\x34", MessageFault::UnknownVersion(0));
    silence(b"\x80\x01\x12\x34", MessageFault::UnknownVersion(2));
    silence(b"\xC0\x01\x12\x34", MessageFault::UnknownVersion(3));
    // A DTLS 1.2 handshake, which reaches a plain port when a device is misconfigured.
    silence(
        b"\x16\xFE\xFD\x00\x00\x00\x00\x00\x00",
        MessageFault::UnknownVersion(0),
    );

    reset(
        b"\x49\x01\x12\x34123456789",
        MessageFault::ReservedTokenLength(9),
    );
    reset(
        b"\x4F\x01\x12\x34123456789abcdef",
        MessageFault::ReservedTokenLength(15),
    );
    silence(
        b"\x59\x01\x12\x34123456789",
        MessageFault::ReservedTokenLength(9),
    );
    silence(
        b"\x69\x45\x12\x34123456789",
        MessageFault::ReservedTokenLength(9),
    );
    reset(b"\x42\x01\x12\x34a", MessageFault::TokenCutOff);
    reset(b"\x48\x02\x12\x34", MessageFault::TokenCutOff);
    silence(b"\x52\x01\x12\x34a", MessageFault::TokenCutOff);

    reset(b"\x40\x20\x12\x34", MessageFault::ReservedClass(1));
    reset(b"\x40\xC1\x12\x34", MessageFault::ReservedClass(6));
    reset(b"\x40\xFF\x12\x34", MessageFault::ReservedClass(7));
    silence(b"\x50\xE0\x12\x34", MessageFault::ReservedClass(7));
    silence(b"\x60\x3F\x12\x34", MessageFault::ReservedClass(1));
    silence(b"\x70\xC0\x12\x34", MessageFault::ReservedClass(6));
}

#[test]
fn an_empty_message_with_content_is_reset_only_when_confirmable() {
    reset(b"\x41\x00\x12\x34a", MessageFault::EmptyWithContent);
    reset(b"\x41\x00\x12\x34", MessageFault::EmptyWithContent);
    reset(b"\x40\x00\x12\x34\xB1a", MessageFault::EmptyWithContent);
    reset(b"\x40\x00\x12\x34\xFFa", MessageFault::EmptyWithContent);
    silence(b"\x60\x00\x12\x34\xFF", MessageFault::EmptyWithContent);
    silence(b"\x71\x00\x12\x34a", MessageFault::EmptyWithContent);
    silence(b"\x50\x00\x12\x34", MessageFault::EmptyNonConfirmable);
    silence(b"\x60\x01\x12\x34", MessageFault::RequestInAcknowledgement);
    silence(b"\x61\x1F\x12\x34a", MessageFault::RequestInAcknowledgement);
    silence(b"\x70\x01\x12\x34", MessageFault::ResetNotEmpty);
    silence(b"\x70\x45\x12\x34", MessageFault::ResetNotEmpty);
}

#[test]
fn malformed_options_are_reset_only_when_confirmable() {
    reset(b"\x40\x01\x12\x34\xF0", MessageFault::OptionDelta);
    reset(b"\x40\x01\x12\x34\xE0\xFF\xFF", MessageFault::OptionDelta);
    reset(
        b"\x40\x01\x12\x34\xE0\xFE\xF2\xE0\x00\x00",
        MessageFault::OptionDelta,
    );
    reset(b"\x40\x01\x12\x34\xBF", MessageFault::OptionLength);
    reset(b"\x40\x01\x12\x34\xB2a", MessageFault::OptionLength);
    reset(b"\x40\x01\x12\x34\xD0", MessageFault::OptionLength);
    reset(b"\x40\x01\x12\x34\xE0\x00", MessageFault::OptionLength);
    reset(b"\x40\x01\x12\x34\xBD", MessageFault::OptionLength);
    reset(b"\x40\x01\x12\x34\xBD\x00a", MessageFault::OptionLength);
    reset(b"\x40\x01\x12\x34\xBE\x00", MessageFault::OptionLength);
    reset(b"\x40\x01\x12\x34\xBE\xFF\xFF", MessageFault::OptionLength);
    silence(b"\x50\x01\x12\x34\xB2a", MessageFault::OptionLength);
    silence(b"\x60\x45\x12\x34\xF0", MessageFault::OptionDelta);
}

#[test]
fn a_payload_marker_without_payload_is_reset_only_when_confirmable() {
    reset(b"\x40\x02\x12\x34\xFF", MessageFault::PayloadMissing);
    reset(b"\x40\x02\x12\x34\xB2rd\xFF", MessageFault::PayloadMissing);
    reset(
        b"\x42\x02\x12\x34ab\xD2\x00xy\xBD\x01aaaaaaaaaaaaaa\xFF",
        MessageFault::PayloadMissing,
    );
    silence(b"\x60\x45\x12\x34\xC0\xFF", MessageFault::PayloadMissing);
}

#[test]
fn well_formed_oddities_are_messages() {
    let message = |bytes: &[u8]| Message::decode(bytes).expect("it is well-formed");

    let ping = message(b"\x40\x00\x12\x34");
    assert_eq!(ping, Message::ping(MessageId(0x1234)));
    assert_eq!(
        message(b"\x60\x00\x12\x34"),
        Message::acknowledgement(MessageId(0x1234))
    );
    assert_eq!(
        message(b"\x70\x00\x12\x34"),
        Message::reset(MessageId(0x1234))
    );

    let unknown_method = message(b"\x40\x1F\x12\x34");
    assert!(unknown_method.code.is_request());
    let unassigned_response = message(b"\x60\x7F\x12\x34");
    assert_eq!(unassigned_response.code.to_string(), "3.31");
    assert!(unassigned_response.code.is_response());

    let token_of_markers = message(b"\x42\x01\x12\x34\xFF\xFF");
    assert_eq!(token_of_markers.token.as_bytes(), b"\xFF\xFF");
    assert_eq!(token_of_markers.payload, b"");
    let option_ending_in_a_marker = message(b"\x40\x01\x12\x34\xD1\xEF\xFF");
    assert_eq!(
        options_of(&option_ending_in_a_marker),
        [(252, b"\xFF".to_vec())]
    );
    let payload_of_a_marker = message(b"\x40\x02\x12\x34\xFF\xFF");
    assert_eq!(payload_of_a_marker.payload, b"\xFF");
    let last_option_number = message(b"\x40\x01\x12\x34\xE0\xFE\xF2");
    assert_eq!(options_of(&last_option_number), [(65_535, vec![])]);
}

#[test]
fn misused_critical_options_are_found_and_misused_elective_ones_ignored() {
    let known = [
        option::IF_MATCH,
        option::IF_NONE_MATCH,
        option::URI_HOST,
        option::URI_PORT,
    ]
    .into_iter()
    .chain([option::URI_PATH, option::URI_QUERY, option::ACCEPT])
    .chain([option::BLOCK1, option::BLOCK2])
    .collect::<Vec<_>>();
    let long = [b'a'; 256];
    let bad: &[(u16, &[u8])] = &[
        (option::IF_MATCH, b"123456789"),
        (option::URI_HOST, b""),
        (option::URI_HOST, &long),
        (option::URI_HOST, b"\xC3\x28"),
        (option::IF_NONE_MATCH, b"1"),
        (option::URI_PORT, b"123"),
        (option::URI_PATH, &long),
        (option::URI_PATH, b"\xFF"),
        (option::URI_QUERY, &long),
        (option::URI_QUERY, b"ep=\x80"),
        (option::ACCEPT, b"123"),
        (option::BLOCK2, b"1234"),
        (option::BLOCK1, b"1234"),
        (option::OSCORE, b""),
        (option::PROXY_URI, b"coap://elsewhere"),
        (9_999, b"anything"),
    ];
    for (number, value) in bad {
        let message = read_back(post().with_option(*number, value));
        assert_eq!(
            message.unknown_critical_option(&known),
            Some(*number),
            "{value:?}"
        );
    }
    let elective: &[(u16, &[u8])] = &[
        (option::ETAG, b""),
        (option::ETAG, b"123456789"),
        (option::OBSERVE, b"1234"),
        (option::LOCATION_PATH, &long),
        (option::LOCATION_PATH, b"\xFF"),
        (option::CONTENT_FORMAT, b"123"),
        (option::MAX_AGE, b"12345"),
        (option::LOCATION_QUERY, b"\x80"),
        (option::SIZE1, b"12345"),
        (option::SIZE2, b"12345"),
        (option::ECHO, b""),
        (option::NO_RESPONSE, b"12"),
    ];
    for (number, value) in elective {
        let message = read_back(post().with_option(*number, value));
        assert_eq!(
            message.unknown_critical_option(&known),
            None,
            "{number}: {value:?}"
        );
        assert_eq!(options_of(&message), [], "{number}: {value:?}");
    }
}

#[test]
fn options_at_the_edge_of_their_definition_are_kept() {
    let longest = [b'a'; 255];
    let edges: &[(u16, &[u8])] = &[
        (option::IF_MATCH, b""),
        (option::URI_HOST, b"a"),
        (option::URI_HOST, &longest),
        (option::ETAG, b"12345678"),
        (option::IF_NONE_MATCH, b""),
        (option::OBSERVE, b""),
        (option::OBSERVE, b"123"),
        (option::URI_PATH, b""),
        (option::URI_PATH, &longest),
        (option::URI_QUERY, "ep=\u{e9}".as_bytes()),
        (option::ACCEPT, b""),
        (option::ACCEPT, b"12"),
        (option::BLOCK1, b"123"),
        (option::SIZE1, b"1234"),
        (10_000, &[0; 2_000]),
    ];
    for (number, value) in edges {
        let message = read_back(post().with_option(*number, value));
        assert_eq!(options_of(&message), [(*number, value.to_vec())]);
        assert_eq!(message.unknown_critical_option(&[*number]), None);
    }
}

#[test]
fn a_supernumerary_option_is_treated_like_an_unrecognized_one() {
    let twice = |number| read_back(post().with_option(number, b"1").with_option(number, b"2"));
    let accept = twice(option::ACCEPT);
    assert_eq!(
        accept.unknown_critical_option(&[option::ACCEPT]),
        Some(option::ACCEPT)
    );
    let observe = twice(option::OBSERVE);
    assert_eq!(observe.unknown_critical_option(&[]), None);
    assert_eq!(options_of(&observe), [(option::OBSERVE, b"1".to_vec())]);
    let path = twice(option::URI_PATH);
    assert_eq!(path.unknown_critical_option(&[option::URI_PATH]), None);
    assert_eq!(path.uri_path().collect::<Vec<_>>(), ["1", "2"]);
}

#[test]
fn a_built_message_is_read_back() {
    let built = Message::request(
        MessageKind::Confirmable,
        Code::FETCH,
        MessageId(7),
        Token::from_u64(9),
    )
    .with_accept(ContentFormat::SENML_CBOR)
    .with_uri_query(["pmin=1", "pmax=60"])
    .with_observe(0)
    .with_content_format(ContentFormat::TEXT)
    .with_uri_path(["3", "0"])
    .with_uri_path(vec![String::from("9")])
    .with_max_age(86_400)
    .with_location_path(["rd", "a1"])
    .with_block1(Block::from_value(0x12_345E))
    .with_block2(Block::from_value(6))
    .with_payload("on");
    let read = read_back(built.clone());
    assert_eq!(read, built);
    assert_eq!(read.token.to_string(), "0000000000000009");
    assert_eq!(read.uri_path().collect::<Vec<_>>(), ["3", "0", "9"]);
    assert_eq!(read.uri_query().collect::<Vec<_>>(), ["pmin=1", "pmax=60"]);
    assert_eq!(read.location_path().collect::<Vec<_>>(), ["rd", "a1"]);
    assert_eq!(read.accept(), Some(ContentFormat(112)));
    assert_eq!(read.content_format(), Some(ContentFormat(0)));
    assert_eq!(read.observe(), Some(0));
    assert_eq!(read.max_age(), Some(86_400));
    let block = read.block1().expect("a Block1 was set");
    assert_eq!(
        (block.number(), block.has_more(), block.size()),
        (0x1_2345, true, BlockSize::of_bytes(1_024))
    );
    assert_eq!(read.block2().map(Block::number), Some(0));
    assert_eq!(Block::from_value(7).size(), None);
    assert_eq!(read.payload, b"on");
    let order: Vec<u16> = read.options().map(|(number, _)| number).collect();
    assert_eq!(order, [6, 8, 8, 11, 11, 11, 12, 14, 15, 15, 17, 23, 27]);
}

#[test]
fn numbers_are_written_without_leading_zeros_and_read_with_them() {
    let cases: [(u32, &[u8]); 6] = [
        (0, b""),
        (1, b"\x01"),
        (255, b"\xFF"),
        (256, b"\x01\x00"),
        (65_536, b"\x01\x00\x00"),
        (u32::MAX, b"\xFF\xFF\xFF\xFF"),
    ];
    for (number, bytes) in cases {
        let message = post().with_max_age(number);
        assert_eq!(options_of(&message), [(option::MAX_AGE, bytes.to_vec())]);
        assert_eq!(message.max_age(), Some(number));
    }
    let padded = read_back(post().with_option(option::OBSERVE, b"\x00\x00\x05"));
    assert_eq!(padded.observe(), Some(5));
    assert_eq!(post().with_observe(u32::MAX).observe(), Some(0xFF_FFFF));
}

#[test]
fn an_option_that_is_set_again_has_its_last_value() {
    let message = post()
        .with_max_age(5)
        .with_accept(ContentFormat::TEXT)
        .with_max_age(6);
    assert_eq!(message.max_age(), Some(6));
    assert_eq!(
        message,
        post().with_max_age(6).with_accept(ContentFormat::TEXT)
    );
}

#[test]
fn a_response_has_the_type_that_its_request_requires() {
    let request = |kind| Message::request(kind, Code::GET, MessageId(5), Token::from_u64(1));
    let piggybacked = Message::response_to(
        &request(MessageKind::Confirmable),
        Code::CONTENT,
        MessageId(8),
    );
    assert_eq!(piggybacked.kind, MessageKind::Acknowledgement);
    assert_eq!(piggybacked.message_id, MessageId(5));
    assert_eq!(piggybacked.token, Token::from_u64(1));
    let alone = Message::response_to(
        &request(MessageKind::NonConfirmable),
        Code::CONTENT,
        MessageId(8),
    );
    assert_eq!(alone.kind, MessageKind::NonConfirmable);
    assert_eq!(alone.message_id, MessageId(8));
    assert_eq!(alone.token, Token::from_u64(1));
}

#[test]
fn messages_past_the_codecs_own_limit_are_written() {
    let message = post().with_payload(vec![b'x'; 64_500]);
    assert_eq!(read_back(message.clone()), message);
}

#[test]
fn codes_are_split_into_class_and_detail() {
    let cases = [
        (Code::EMPTY, 0x00, "0.00", "000"),
        (Code::IPATCH, 0x07, "0.07", "007"),
        (Code::CREATED, 0x41, "2.01", "201"),
        (Code::CONTINUE, 0x5F, "2.31", "231"),
        (Code::UNSUPPORTED_CONTENT_FORMAT, 0x8F, "4.15", "415"),
        (Code::TOO_MANY_REQUESTS, 0x9D, "4.29", "429"),
        (Code::SERVICE_UNAVAILABLE, 0xA3, "5.03", "503"),
    ];
    for (code, byte, shown, digits) in cases {
        assert_eq!(code.as_byte(), byte);
        assert_eq!(Code::from_byte(byte), code);
        assert_eq!(code.to_string(), shown);
        assert_eq!(code.digits(), digits);
        assert_eq!(Code::new(code.class(), code.detail()), code);
    }
    assert!(Code::DELETED.is_success() && Code::DELETED.is_response());
    assert!(!Code::NOT_FOUND.is_success() && Code::NOT_FOUND.is_response());
    assert!(Code::FETCH.is_request() && !Code::FETCH.is_response());
    assert!(!Code::EMPTY.is_request() && !Code::EMPTY.is_response());
}

#[test]
fn tokens_hold_up_to_eight_bytes() {
    assert_eq!(Token::new(b""), Some(Token::EMPTY));
    assert_eq!(
        Token::new(b"12345678").map(|token| token.to_string()),
        Some("3132333435363738".into())
    );
    assert_eq!(Token::new(b"123456789"), None);
    assert_ne!(Token::new(b"\0"), Some(Token::EMPTY));
    assert_ne!(Token::new(b"\0"), Token::new(b"\0\0"));
    assert_eq!(Token::from_u64(1).as_bytes(), [0, 0, 0, 0, 0, 0, 0, 1]);
}

fn reset(bytes: &[u8], reason: MessageFault) {
    let expected = MalformedMessage {
        reason,
        reset: Some(MessageId(0x1234)),
    };
    assert_eq!(Message::decode(bytes), Err(expected), "{bytes:02x?}");
}

fn silence(bytes: &[u8], reason: MessageFault) {
    let expected = MalformedMessage {
        reason,
        reset: None,
    };
    assert_eq!(Message::decode(bytes), Err(expected), "{bytes:02x?}");
}

fn post() -> Message {
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(1),
        Token::EMPTY,
    )
}

fn read_back(message: Message) -> Message {
    Message::decode(&message.encode()).expect("what we write is well-formed")
}

fn options_of(message: &Message) -> Vec<(u16, Vec<u8>)> {
    message
        .options()
        .map(|(number, value)| (number, value.to_vec()))
        .collect()
}
