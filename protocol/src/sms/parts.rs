//! How is a payload divided into messages? Into parts with a user data header for concatenated
//! short messages (3GPP TS 23.040 section 9.2.3.24.1), none of which separates an escape from its
//! septet or the halves of a surrogate pair.

use super::coding::{Alphabet, Unit, Unwritable};

/// The octets of user data that a message has room for.
const USER_DATA_OCTETS: usize = 140;

/// The bits of a septet.
const SEPTET_BITS: usize = 7;

/// The most parts of a concatenated message: their number has one octet.
pub const PARTS_MAX: usize = 255;

/// The information element of concatenated short messages with an 8-bit reference.
const CONCATENATED: [u8; 2] = [0x00, 0x03];

/// A payload as messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EncodedParts {
    /// The alphabet of the user data.
    pub alphabet: Alphabet,
    /// The messages, in order.
    pub parts: Vec<EncodedPart>,
}

/// One message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EncodedPart {
    /// The user data header, with its length before it; empty if there is none.
    pub header: Box<[u8]>,
    /// The user data behind it: septets one to an octet, or octets.
    pub user_data: Box<[u8]>,
}

/// Why a payload cannot be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Indivisible {
    /// It cannot be written in its alphabet.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    /// With a header of the caller it does not fit one message.
    #[error("must fit one message with its udh: at most {room} {unit}")]
    TooLongForOne {
        /// What there is room for.
        room: usize,
        /// Of what.
        unit: &'static str,
    },
    /// It has too many parts.
    #[error("must have at most {PARTS_MAX} parts")]
    TooManyParts,
    /// The header of the caller is not one.
    #[error("must be a user data header: its length, then that many octets of elements")]
    Header,
}

/// Divides a payload. With a header of the caller it is never divided; without one it has parts
/// with this reference if it does not fit one message.
pub fn encode(
    payload: &str,
    dcs: u8,
    header: Option<&[u8]>,
    reference: u8,
) -> Result<EncodedParts, Indivisible> {
    let alphabet = Alphabet::of(dcs);
    let units = alphabet.units(payload)?;
    let whole = units.iter().map(Vec::len).sum::<usize>();
    let own = header.unwrap_or_default();
    if !is_header(own) {
        return Err(Indivisible::Header);
    }
    let room = room_behind(own.len(), alphabet);
    let parts = match header {
        _ if whole <= room => vec![EncodedPart {
            header: own.into(),
            user_data: units.concat().into(),
        }],
        Some(_) => {
            let unit = unit_of(alphabet);
            return Err(Indivisible::TooLongForOne { room, unit });
        }
        None => divided(&units, alphabet, reference)?,
    };
    Ok(EncodedParts { alphabet, parts })
}

/// The units that a message has room for behind a header of so many octets. Septets begin at a
/// septet boundary behind it.
fn room_behind(header: usize, alphabet: Alphabet) -> usize {
    let octets = USER_DATA_OCTETS.saturating_sub(header);
    match alphabet {
        Alphabet::Gsm7 => octets * 8 / SEPTET_BITS,
        Alphabet::EightBit => octets,
        // An odd octet has no room for half a character.
        Alphabet::Ucs2 => octets / 2 * 2,
    }
}

fn divided(
    units: &[Unit],
    alphabet: Alphabet,
    reference: u8,
) -> Result<Vec<EncodedPart>, Indivisible> {
    let mut bodies: Vec<Vec<u8>> = vec![Vec::new()];
    let room = room_behind(1 + CONCATENATED.len() + 3, alphabet);
    for unit in units {
        match bodies.last_mut() {
            Some(body) if body.len() + unit.len() <= room => body.extend_from_slice(unit),
            Some(_) | None => bodies.push(unit.clone()),
        }
    }
    let total = u8::try_from(bodies.len()).map_err(|_| Indivisible::TooManyParts)?;
    let [element, length] = CONCATENATED;
    let parts = (1..=total).zip(bodies).map(|(number, body)| EncodedPart {
        header: [5, element, length, reference, total, number].into(),
        user_data: body.into(),
    });
    Ok(parts.collect())
}

/// Whether octets are the length of a header and its elements, or nothing.
fn is_header(octets: &[u8]) -> bool {
    let Some((length, mut rest)) = octets.split_first() else {
        return true;
    };
    if usize::from(*length) != rest.len() || octets.len() > USER_DATA_OCTETS {
        return false;
    }
    while let Some((_, behind)) = rest.split_first() {
        let Some((length, data)) = behind.split_first() else {
            return false;
        };
        let Some(behind) = data.get(usize::from(*length)..) else {
            return false;
        };
        rest = behind;
    }
    true
}

fn unit_of(alphabet: Alphabet) -> &'static str {
    match alphabet {
        Alphabet::Gsm7 => "septets",
        Alphabet::EightBit | Alphabet::Ucs2 => "octets",
    }
}
