//! Which alphabet does a data coding scheme name (3GPP TS 23.038 section 4), and how is a payload
//! written in it?

use super::gsm7::{self, encode_char};

/// The alphabet of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Alphabet {
    /// The GSM 7 bit default alphabet.
    Gsm7,
    /// Octets without a meaning.
    EightBit,
    /// UCS-2, which devices read as UTF-16.
    Ucs2,
}

/// Why a payload cannot be written in an alphabet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unwritable {
    /// The alphabet does not have a character.
    #[error("the GSM 7 bit alphabet of this dcs does not have the character {0:?}; use dcs 8")]
    Character(char),
    /// 8-bit data is not in hexadecimal.
    #[error("must be hexadecimal digits, two for each octet, because the dcs says 8-bit data")]
    NotHex,
}

/// The data coding scheme of 8-bit data.
pub const DCS_DATA: u8 = 4;

/// The data coding scheme of a text: GSM 7 bit if it has every character, otherwise UCS-2.
pub fn dcs_for(text: &str) -> u8 {
    const GSM7: u8 = 0;
    const UCS2: u8 = 8;
    if Alphabet::of(GSM7).has(text) {
        GSM7
    } else {
        UCS2
    }
}

/// A unit of a payload that no division separates.
pub(super) type Unit = Vec<u8>;

impl Alphabet {
    /// The alphabet of a data coding scheme. A reserved one means the default alphabet.
    pub fn of(dcs: u8) -> Self {
        match dcs >> 4 {
            // General data coding, and automatic deletion.
            0x0..=0x7 => Self::of_bits(dcs),
            // Message waiting with UCS-2.
            0xe => Self::Ucs2,
            // Data coding and message class.
            0xf if dcs & 0b100 != 0 => Self::EightBit,
            _ => Self::Gsm7,
        }
    }

    fn of_bits(dcs: u8) -> Self {
        match (dcs >> 2) & 0b11 {
            0b01 => Self::EightBit,
            0b10 => Self::Ucs2,
            _ => Self::Gsm7,
        }
    }

    /// Whether a payload can be written in it.
    pub fn has(self, payload: &str) -> bool {
        self.units(payload).is_ok()
    }

    /// The units of a payload: septets of a character one to an octet, octets, or the big-endian
    /// UTF-16 of a character.
    pub(super) fn units(self, payload: &str) -> Result<Vec<Unit>, Unwritable> {
        match self {
            Self::Gsm7 => payload.chars().map(septets_of).collect(),
            Self::EightBit => {
                octets(payload).map(|all| all.into_iter().map(|it| vec![it]).collect())
            }
            Self::Ucs2 => Ok(payload.chars().map(utf16_of).collect()),
        }
    }

    /// The text of the user data of a message, without its header: septets one to an octet, octets
    /// as hexadecimal digits, or UTF-16.
    pub fn read(self, user_data: &[u8]) -> String {
        match self {
            Self::Gsm7 => gsm7::decode(user_data),
            Self::EightBit => hex(user_data),
            Self::Ucs2 => {
                let units = user_data.chunks(2).map(|pair| match pair {
                    [high, low] => u16::from_be_bytes([*high, *low]),
                    _ => 0xfffd,
                });
                let read = char::decode_utf16(units);
                read.map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect()
            }
        }
    }
}

/// Octets in hexadecimal.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The octets of hexadecimal digits.
pub fn octets(text: &str) -> Result<Vec<u8>, Unwritable> {
    let digits: Option<Vec<u8>> = text.chars().map(digit).collect();
    let digits = digits.ok_or(Unwritable::NotHex)?;
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(high << 4 | low),
        _ => None,
    });
    pairs.collect::<Option<_>>().ok_or(Unwritable::NotHex)
}

fn digit(character: char) -> Option<u8> {
    character
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

fn septets_of(character: char) -> Result<Unit, Unwritable> {
    let septets = encode_char(character).ok_or(Unwritable::Character(character))?;
    let mut unit = Vec::with_capacity(septets.count());
    septets.push_to(&mut unit);
    Ok(unit)
}

fn utf16_of(character: char) -> Unit {
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units).iter();
    units.flat_map(|unit| unit.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_coding_scheme_names_an_alphabet() {
        let cases = [
            (0x00, Alphabet::Gsm7),
            (0x04, Alphabet::EightBit),
            (0x08, Alphabet::Ucs2),
            (0x0c, Alphabet::Gsm7),
            (0x11, Alphabet::Gsm7),
            (0x15, Alphabet::EightBit),
            (0x18, Alphabet::Ucs2),
            (0x48, Alphabet::Ucs2),
            (0x80, Alphabet::Gsm7),
            (0xc8, Alphabet::Gsm7),
            (0xd8, Alphabet::Gsm7),
            (0xe0, Alphabet::Ucs2),
            (0xf0, Alphabet::Gsm7),
            (0xf4, Alphabet::EightBit),
            (0xf6, Alphabet::EightBit),
        ];
        for (dcs, alphabet) in cases {
            assert_eq!(Alphabet::of(dcs), alphabet, "{dcs:#04x}");
        }
    }

    #[test]
    fn hexadecimal_digits_are_read_in_pairs() {
        assert_eq!(octets("00fFa0"), Ok(vec![0x00, 0xff, 0xa0]));
        assert_eq!(octets(""), Ok(vec![]));
        for text in ["0", "0g", "0 0", "é0", "+1"] {
            assert_eq!(octets(text), Err(Unwritable::NotHex), "{text}");
        }
        assert_eq!(hex(&[0x00, 0xff]), "00ff");
    }

    #[test]
    fn utf16_that_is_broken_is_read_with_replacements() {
        assert_eq!(Alphabet::Ucs2.read(&[0x00, 0x41, 0xd8]), "A\u{fffd}");
        assert_eq!(Alphabet::Ucs2.read(&[0xd8, 0x3d, 0x00, 0x41]), "\u{fffd}A");
        assert_eq!(Alphabet::Ucs2.read(&[0xd8, 0x3d, 0xde, 0x00]), "😀");
    }
}
