//! The GSM 7 bit default alphabet and its extension table (3GPP TS 23.038 section 6.2.1).
//!
//! A character of the extension table is an escape and a second septet, which a division into
//! parts must not separate.

/// The septet before a character of the extension table.
pub const ESCAPE: u8 = 0x1b;

/// The characters of the default alphabet, by their septet. At the escape stands a space, as a
/// device shows one that it does not understand.
const DEFAULT: [char; 128] = [
    '@', '£', '$', '¥', 'è', 'é', 'ù', 'ì', 'ò', 'Ç', '\n', 'Ø', 'ø', '\r', 'Å', 'å', 'Δ', '_',
    'Φ', 'Γ', 'Λ', 'Ω', 'Π', 'Ψ', 'Σ', 'Θ', 'Ξ', ' ', 'Æ', 'æ', 'ß', 'É', ' ', '!', '"', '#', '¤',
    '%', '&', '\'', '(', ')', '*', '+', ',', '-', '.', '/', '0', '1', '2', '3', '4', '5', '6', '7',
    '8', '9', ':', ';', '<', '=', '>', '?', '¡', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J',
    'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'Ä', 'Ö', 'Ñ',
    'Ü', '§', '¿', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p',
    'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'ä', 'ö', 'ñ', 'ü', 'à',
];

/// The characters of the extension table, with the septet behind the escape.
const EXTENSION: [(u8, char); 10] = [
    (0x0a, '\u{c}'),
    (0x14, '^'),
    (0x28, '{'),
    (0x29, '}'),
    (0x2f, '\\'),
    (0x3c, '['),
    (0x3d, '~'),
    (0x3e, ']'),
    (0x40, '|'),
    (0x65, '€'),
];

/// The septets of a character: one, or an escape and one. None if the alphabet does not have it.
pub fn encode_char(character: char) -> Option<Septets> {
    if let Some((code, _)) = EXTENSION.iter().find(|(_, of)| *of == character) {
        return Some(Septets::Escaped(*code));
    }
    let mut places = (0u8..).zip(DEFAULT);
    let place = places.find(|(code, of)| *of == character && *code != ESCAPE);
    place.map(|(code, _)| Septets::One(code))
}

/// The septets of one character.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Septets {
    /// One of the default alphabet.
    One(u8),
    /// One of the extension table, behind an escape.
    Escaped(u8),
}

impl Septets {
    /// How many there are.
    pub fn count(self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Escaped(_) => 2,
        }
    }

    /// Appends them, one to an octet.
    pub fn push_to(self, octets: &mut Vec<u8>) {
        match self {
            Self::One(code) => octets.push(code),
            Self::Escaped(code) => octets.extend([ESCAPE, code]),
        }
    }
}

/// The text of unpacked septets. An escape before a septet without a meaning is a space, and so is
/// one at the end (3GPP TS 23.038 section 6.2.1.1). The upper bit of an octet does not count.
pub fn decode(septets: &[u8]) -> String {
    let mut text = String::with_capacity(septets.len());
    let mut rest = septets.iter().map(|octet| octet & 0x7f);
    while let Some(code) = rest.next() {
        if code != ESCAPE {
            text.push(default_char(code));
            continue;
        }
        let Some(code) = rest.next() else {
            text.push(' ');
            break;
        };
        let extended = EXTENSION.iter().find(|(of, _)| *of == code);
        text.push(extended.map_or_else(|| default_char(code), |(_, character)| *character));
    }
    text
}

fn default_char(code: u8) -> char {
    DEFAULT.get(usize::from(code)).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_has_the_codes_of_the_standard() {
        let codes = [
            ('@', 0x00),
            ('£', 0x01),
            ('\n', 0x0a),
            ('\r', 0x0d),
            ('Δ', 0x10),
            ('_', 0x11),
            ('Æ', 0x1c),
            ('É', 0x1f),
            (' ', 0x20),
            ('¤', 0x24),
            ('0', 0x30),
            ('¡', 0x40),
            ('A', 0x41),
            ('Z', 0x5a),
            ('Ä', 0x5b),
            ('§', 0x5f),
            ('¿', 0x60),
            ('a', 0x61),
            ('z', 0x7a),
            ('ü', 0x7e),
            ('à', 0x7f),
        ];
        for (character, code) in codes {
            assert_eq!(
                encode_char(character),
                Some(Septets::One(code)),
                "{character}"
            );
        }
        for (code, character) in EXTENSION {
            assert_eq!(
                encode_char(character),
                Some(Septets::Escaped(code)),
                "{character}"
            );
        }
        for character in ['`', 'ç', 'á', '\u{0}', '\t', '漢', '😀'] {
            assert_eq!(encode_char(character), None, "{character:?}");
        }
    }

    #[test]
    fn every_septet_but_the_escape_is_read_as_it_is_written() {
        for code in (0u8..128).filter(|code| *code != ESCAPE) {
            let text = decode(&[code]);
            let character = text.chars().next().unwrap();
            assert_eq!(
                encode_char(character),
                Some(Septets::One(code)),
                "{code:#x}"
            );
        }
        for (code, character) in EXTENSION {
            assert_eq!(decode(&[ESCAPE, code]), character.to_string());
        }
    }

    #[test]
    fn what_has_no_meaning_is_read_as_the_standard_says() {
        assert_eq!(decode(&[ESCAPE]), " ");
        assert_eq!(decode(&[ESCAPE, 0x41]), "A");
        assert_eq!(decode(&[ESCAPE, ESCAPE]), " ");
        assert_eq!(decode(&[0xc1]), "A");
    }
}
