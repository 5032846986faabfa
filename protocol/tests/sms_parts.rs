//! Is a payload of any length and alphabet divided so that its parts give it again?

#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use protocol::sms::coding::{Alphabet, Unwritable, hex};
use protocol::sms::parts::{EncodedParts, Indivisible, encode};

const GSM7: u8 = 0;
const EIGHT_BIT: u8 = 4;
const UCS2: u8 = 8;

#[test]
fn a_text_has_as_many_parts_as_the_standard_says() {
    let cases = [
        ("a", 0, GSM7, vec![0]),
        ("a", 160, GSM7, vec![160]),
        ("a", 161, GSM7, vec![153, 8]),
        ("a", 306, GSM7, vec![153, 153]),
        ("a", 307, GSM7, vec![153, 153, 1]),
        ("€", 80, GSM7, vec![160]),
        ("€", 81, GSM7, vec![152, 10]),
        ("41", 140, EIGHT_BIT, vec![140]),
        ("41", 141, EIGHT_BIT, vec![134, 7]),
        ("ж", 70, UCS2, vec![140]),
        ("ж", 71, UCS2, vec![134, 8]),
        ("😀", 35, UCS2, vec![140]),
        ("😀", 36, UCS2, vec![132, 12]),
    ];
    for (unit, count, dcs, lengths) in cases {
        let encoded = encode(&unit.repeat(count), dcs, None, 7).unwrap();
        let found: Vec<usize> = encoded
            .parts
            .iter()
            .map(|part| part.user_data.len())
            .collect();
        assert_eq!(found, lengths, "{unit} {count} times");
        let total = u8::try_from(lengths.len()).unwrap();
        for (number, part) in (1..).zip(&encoded.parts) {
            match total {
                1 => assert!(part.header.is_empty()),
                _ => assert_eq!(*part.header, [5, 0, 3, 7, total, number]),
            }
        }
    }
}

#[test]
fn the_number_of_parts_has_a_bound() {
    assert!(encode(&"a".repeat(255 * 153), GSM7, None, 7).is_ok());
    let refused = encode(&"a".repeat(255 * 153 + 1), GSM7, None, 7);
    assert_eq!(refused, Err(Indivisible::TooManyParts));
}

#[test]
fn a_payload_with_a_header_of_the_caller_is_never_divided() {
    // Application port addressing, 16 bit: seven octets.
    let ports = [6, 5, 4, 0x0b, 0x84, 0x23, 0xf0];
    let fits = encode(&"a".repeat(152), GSM7, Some(&ports), 7).unwrap();
    assert_eq!(fits.parts.len(), 1);
    assert_eq!(*fits.parts[0].header, ports);
    let refused = encode(&"a".repeat(153), GSM7, Some(&ports), 7);
    let room = 152;
    assert_eq!(
        refused,
        Err(Indivisible::TooLongForOne {
            room,
            unit: "septets"
        })
    );
    let refused = encode(&"00".repeat(134), EIGHT_BIT, Some(&ports), 7);
    let room = 133;
    assert_eq!(
        refused,
        Err(Indivisible::TooLongForOne {
            room,
            unit: "octets"
        })
    );
    assert!(encode(&"ж".repeat(66), UCS2, Some(&ports), 7).is_ok());
    assert!(encode(&"ж".repeat(67), UCS2, Some(&ports), 7).is_err());
}

#[test]
fn octets_that_are_no_header_are_refused() {
    for header in [
        &[1][..],
        &[0, 0],
        &[1, 0],
        &[2, 0, 1],
        &[3, 0, 2, 1],
        &[141; 142],
    ] {
        assert_eq!(
            encode("a", GSM7, Some(header), 7),
            Err(Indivisible::Header),
            "{header:?}"
        );
    }
    assert!(encode("a", GSM7, Some(&[0]), 7).is_ok());
    assert!(encode("a", GSM7, Some(&[]), 7).is_ok());
}

#[test]
fn a_payload_that_its_alphabet_does_not_have_is_refused() {
    let refused = encode("漢", GSM7, None, 7);
    assert_eq!(
        refused,
        Err(Indivisible::Unwritable(Unwritable::Character('漢')))
    );
    let refused = encode("abc", EIGHT_BIT, None, 7);
    assert_eq!(refused, Err(Indivisible::Unwritable(Unwritable::NotHex)));
}

proptest! {
    #[test]
    fn the_parts_of_a_text_give_it_again(
        text in gsm_text(),
        unicode in ".{0,400}",
        octets in vec(any::<u8>(), 0..600),
    ) {
        check(&text, GSM7);
        check(&unicode, UCS2);
        check(&hex(&octets), EIGHT_BIT);
    }

    #[test]
    fn no_payload_and_no_header_panics(
        text in ".{0,400}",
        dcs in any::<u8>(),
        header in vec(any::<u8>(), 0..160),
        octets in vec(any::<u8>(), 0..200),
    ) {
        let _ = encode(&text, dcs, Some(&header), 0);
        let _ = encode(&text, dcs, None, 0);
        Alphabet::of(dcs).read(&octets);
    }
}

/// Every part fits a message and can be read by itself, and together they are the payload.
fn check(payload: &str, dcs: u8) {
    let EncodedParts { alphabet, parts } = encode(payload, dcs, None, 7).unwrap();
    let mut read = String::new();
    for part in &parts {
        let octets = match alphabet {
            Alphabet::Gsm7 => (part.user_data.len() * 7).div_ceil(8),
            Alphabet::EightBit | Alphabet::Ucs2 => part.user_data.len(),
        };
        assert!(part.header.len() + octets <= 140);
        read.push_str(&alphabet.read(&part.user_data));
    }
    assert_eq!(read, payload);
}

fn gsm_text() -> impl Strategy<Value = String> {
    let plain: Vec<char> = "@£$¥èéùìòÇ\nØøΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !abcXYZ0189äöñüà"
        .chars()
        .collect();
    let escaped: Vec<char> = "^{}\\[~]|€\u{c}".chars().collect();
    vec(
        prop_oneof![3 => select(plain), 1 => select(escaped)],
        0..700,
    )
    .prop_map(|characters| characters.into_iter().collect())
}
