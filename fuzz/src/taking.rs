//! Which laws hold for block-wise bodies on the server's side? (RFC 7959)

use protocol::coap::assembly::{Assembly, AssemblyOutcome};
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::serving;
use protocol::coap::token::Token;

use crate::FuzzOutcome;
use crate::script::Script;

const BYTES_MAX: usize = 1_024;
const IDLE_MS: i64 = 1_000;
const SIZES: [u16; 4] = [16, 32, 128, 1_024];

/// Whatever requests arrive, an assembled body stays within its limit, is complete once, and equals
/// its blocks; and a block of a response is a part of the body.
pub(crate) fn blocks_taken(bytes: &[u8]) -> FuzzOutcome {
    let mut script = Script::new(bytes);
    let mut assembly = Assembly::default();
    let mut fate = FuzzOutcome::Refused;
    let mut now_ms = 0;
    while !script.is_over() {
        now_ms += i64::from(script.byte() >> 4);
        let Some(request) = next_request(&mut script, assembly.bytes()) else {
            continue;
        };
        if take(&mut assembly, now_ms, &request) == Took::More {
            fate = FuzzOutcome::Read;
        }
        give(usize::from(script.byte()) * 16, &request);
    }
    fate
}

#[derive(PartialEq, Eq)]
enum Took {
    More,
    Nothing,
}

fn next_request(script: &mut Script<'_>, gathered: usize) -> Option<Message> {
    let choice = script.byte();
    if choice & 3 == 3 {
        let length = usize::from(script.byte());
        return Message::decode(script.bytes(length)).ok();
    }
    let size = size_of(choice >> 2);
    let number = match choice & 3 {
        0 => u32::try_from(gathered / size.bytes()).unwrap_or_default(),
        1 => script.number(),
        _ => 0,
    };
    let (more, length) = match choice >> 4 & 3 {
        0 => (More::No, usize::from(script.byte())),
        1 => (More::Yes, usize::from(script.byte())),
        _ => (More::Yes, size.bytes()),
    };
    let request = post().with_payload(vec![script.byte(); length]);
    let request = request.with_block1(Block::new(number, more, size));
    Some(match script.byte() & 7 {
        0 => request.with_uri_query(["t=other"]),
        1 => request.with_size1(script.number()),
        2 => request.with_block2(Block::from_value(script.number())),
        3 => request.with_block1(Block::from_value(script.number())),
        _ => request,
    })
}

fn take(assembly: &mut Assembly, now_ms: i64, request: &Message) -> Took {
    let before = assembly.bytes();
    match assembly.take(now_ms, request, BYTES_MAX) {
        AssemblyOutcome::Whole(whole) => {
            check_whole(&whole, request);
            let left = if request.block1().is_some() {
                0
            } else {
                before
            };
            assert_eq!(assembly.bytes(), left);
            Took::Nothing
        }
        AssemblyOutcome::Continue => {
            assert!(!assembly.is_empty());
            assert!((1..=BYTES_MAX).contains(&assembly.bytes()));
            assert_eq!(assembly.expires_at(IDLE_MS), now_ms + IDLE_MS);
            Took::More
        }
        AssemblyOutcome::Incomplete
        | AssemblyOutcome::TooLarge { max: BYTES_MAX }
        | AssemblyOutcome::Malformed => {
            assert!(assembly.is_empty());
            assert_eq!(assembly.expires_at(IDLE_MS), i64::MAX);
            Took::Nothing
        }
        AssemblyOutcome::TooLarge { max } => panic!("{max} is another limit"),
    }
}

fn check_whole(whole: &Message, request: &Message) {
    assert!(whole.options().eq(request.options()));
    assert!(whole.payload.ends_with(&request.payload));
    let Some(block) = request.block1() else {
        assert_eq!(whole, request);
        return;
    };
    let offset = block.offset().expect("a reserved size makes nothing whole");
    assert_eq!(whole.payload.len(), offset + request.payload.len());
    assert!(whole.payload.len() <= BYTES_MAX);
}

fn give(length: usize, request: &Message) {
    let body: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
    let response = Message::response_to(request, Code::CONTENT, MessageId(2)).with_observe(1);
    for bytes in SIZES {
        let largest = BlockSize::of_bytes(bytes).expect("a size of blocks");
        let given = serving::cut_from(response.clone(), &body, request, largest);
        assert_eq!((given.token, given.kind), (response.token, response.kind));
        if given.code == Code::BAD_REQUEST {
            assert!(given.payload.is_empty() && request.block2().is_some());
            continue;
        }
        let Some(block) = given.block2() else {
            assert_eq!(given.payload, body);
            continue;
        };
        assert!(block.size().is_some_and(|size| size <= largest));
        let offset = block.offset().expect("it has a size");
        let end = offset + given.payload.len();
        assert_eq!(given.payload, &body[offset..end]);
        assert_eq!(block.has_more(), end < body.len());
        assert_eq!(given.observe().is_some(), offset == 0);
    }
}

fn post() -> Message {
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(1),
        Token::EMPTY,
    )
}

fn size_of(choice: u8) -> BlockSize {
    let bytes = SIZES[usize::from(choice & 3)];
    BlockSize::of_bytes(bytes).expect("a size of blocks")
}
