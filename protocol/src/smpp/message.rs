//! What is a message in a `submit_sm` or a `deliver_sm`: text, octets or a receipt, whole or part?

use crate::sms::coding::Alphabet;
use crate::sms::parts::EncodedPart;

/// The bits of the message type in `esm_class` (SMPP 3.4 section 5.2.12).
const MESSAGE_TYPE: u8 = 0b0011_1100;

/// The message is a delivery receipt of the SMS centre.
const RECEIPT: u8 = 0b0000_0100;

/// The message is a notification before the final one.
const INTERMEDIATE: u8 = 0b0010_0000;

/// The octets begin with a user data header.
pub const UDHI: u8 = 0b0100_0000;

/// A delivery receipt is wanted, whether the message is delivered or not (section 5.2.17).
pub const RECEIPT_WANTED: u8 = 0b0000_0001;

/// The information elements of concatenated messages (3GPP TS 23.040 section 9.2.3.24).
const CONCATENATED_8_BIT: u8 = 0x00;
const CONCATENATED_16_BIT: u8 = 0x08;

/// The fields of a `submit_sm` or a `deliver_sm`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ShortMessage {
    /// The sender.
    pub source: Address,
    /// The recipient.
    pub dest: Address,
    /// `esm_class`.
    pub esm_class: u8,
    /// `protocol_id`.
    pub protocol_id: u8,
    /// `data_coding`.
    pub data_coding: u8,
    /// `validity_period`; empty if there is none.
    pub validity_period: Box<str>,
    /// `registered_delivery`.
    pub registered_delivery: u8,
    /// The user data, from `short_message` or `message_payload`.
    pub octets: Box<[u8]>,
    /// `user_message_reference`.
    pub user_message_reference: Option<u16>,
    /// `receipted_message_id`.
    pub receipted_message_id: Option<Box<str>>,
    /// `message_state`.
    pub message_state: Option<u8>,
    /// `sar_msg_ref_num`, `sar_total_segments` and `sar_segment_seqnum`.
    pub segment: Option<Segment>,
}

/// An address.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Address {
    /// Its type of number (SMPP 3.4 section 5.2.5).
    pub ton: u8,
    /// Its numbering plan (section 5.2.6).
    pub npi: u8,
    /// The address.
    pub text: Box<str>,
}

/// The part of a message that a PDU has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment {
    /// The reference that the parts share.
    pub reference: u16,
    /// How many parts there are.
    pub total: u8,
    /// Its number, from 1.
    pub number: u8,
}

/// The text of a message of a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MessageText {
    /// The text; of 8-bit data, the octets in hexadecimal.
    pub payload: String,
    /// The data coding scheme (3GPP TS 23.038 section 4).
    pub dcs: u8,
    /// Which part it is, if there are several.
    pub segment: Option<Segment>,
}

impl ShortMessage {
    /// Whether it is a receipt, final or not.
    pub fn is_receipt(&self) -> bool {
        matches!(self.esm_class & MESSAGE_TYPE, RECEIPT | INTERMEDIATE)
    }

    /// Puts a part of an SMS as its user data.
    pub fn set_part(&mut self, part: &EncodedPart) {
        if !part.header.is_empty() {
            self.esm_class |= UDHI;
        }
        self.octets = [&*part.header, &*part.user_data].concat().into();
    }

    /// The text that a device sent.
    pub fn text(&self) -> MessageText {
        let (header, user_data) = match self.esm_class & UDHI {
            0 => (None, &*self.octets),
            _ => divided(&self.octets),
        };
        let of_header = header.and_then(concatenation);
        let segment = of_header.or(self.segment);
        let (payload, dcs) = read(self.data_coding, user_data);
        MessageText {
            payload,
            dcs,
            segment: segment.filter(|it| it.total > 1 && (1..=it.total).contains(&it.number)),
        }
    }
}

/// The text of user data, and its data coding scheme. SMPP names two character sets that the SMS
/// of a network does not have (section 5.2.19).
fn read(data_coding: u8, user_data: &[u8]) -> (String, u8) {
    const ASCII: u8 = 0x01;
    const OCTETS: u8 = 0x02;
    const LATIN_1: u8 = 0x03;
    const EIGHT_BIT: u8 = 0x04;
    match data_coding {
        ASCII | LATIN_1 => (user_data.iter().copied().map(char::from).collect(), 0),
        OCTETS => (Alphabet::EightBit.read(user_data), EIGHT_BIT),
        dcs => (Alphabet::of(dcs).read(user_data), dcs),
    }
}

/// A user data header without its length, and the rest. Octets that are shorter than the length
/// says have no header.
fn divided(octets: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let parts = octets
        .split_first()
        .and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)));
    parts.map_or((None, octets), |(header, rest)| (Some(header), rest))
}

/// The part that the elements of a header name.
fn concatenation(mut elements: &[u8]) -> Option<Segment> {
    loop {
        let (id, rest) = elements.split_first()?;
        let (length, rest) = rest.split_first()?;
        let (data, behind) = rest.split_at_checked(usize::from(*length))?;
        match (*id, data) {
            (CONCATENATED_8_BIT, [reference, total, number]) => {
                return Some(Segment {
                    reference: u16::from(*reference),
                    total: *total,
                    number: *number,
                });
            }
            (CONCATENATED_16_BIT, [high, low, total, number]) => {
                return Some(Segment {
                    reference: u16::from_be_bytes([*high, *low]),
                    total: *total,
                    number: *number,
                });
            }
            _ => elements = behind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(esm_class: u8, data_coding: u8, octets: &[u8]) -> ShortMessage {
        ShortMessage {
            esm_class,
            data_coding,
            octets: octets.into(),
            ..ShortMessage::default()
        }
    }

    fn segment(reference: u16, total: u8, number: u8) -> Option<Segment> {
        Some(Segment {
            reference,
            total,
            number,
        })
    }

    #[test]
    fn text_is_read_by_its_data_coding() {
        let cases: [(u8, &[u8], &str, u8); 7] = [
            (0x00, &[0x00, 0x1b, 0x65], "@€", 0),
            (0x01, b"@a", "@a", 0),
            (0x03, &[0xe9], "é", 0),
            (0x02, &[0x00, 0xff], "00ff", 4),
            (0x04, &[0x00, 0xff], "00ff", 4),
            (0x08, &[0x04, 0x36], "ж", 8),
            (0xf5, &[0x0a], "0a", 0xf5),
        ];
        for (data_coding, octets, payload, dcs) in cases {
            let text = message(0, data_coding, octets).text();
            assert_eq!(
                (&*text.payload, text.dcs),
                (payload, dcs),
                "{data_coding:#x}"
            );
            assert_eq!(text.segment, None);
        }
    }

    #[test]
    fn a_part_is_named_by_its_header_or_by_its_parameters() {
        let of_header = |octets: &[u8]| message(UDHI, 0, octets).text();
        let text = of_header(&[5, 0, 3, 7, 2, 1, b'a']);
        assert_eq!((&*text.payload, text.segment), ("a", segment(7, 2, 1)));
        let text = of_header(&[6, 8, 4, 1, 7, 2, 2, b'a']);
        assert_eq!((&*text.payload, text.segment), ("a", segment(0x107, 2, 2)));
        let behind_a_port = [11, 5, 4, 0x15, 0x81, 0, 0, 0, 3, 9, 3, 2, b'a'];
        assert_eq!(of_header(&behind_a_port).segment, segment(9, 3, 2));
        let with_parameters = ShortMessage {
            segment: segment(500, 2, 2),
            ..message(0, 0, b"a")
        };
        assert_eq!(with_parameters.text().segment, segment(500, 2, 2));
    }

    #[test]
    fn a_part_that_is_none_is_a_whole_message() {
        for octets in [
            &[5, 0, 3, 7, 2, 3, b'a'][..],
            &[5, 0, 3, 7, 2, 0, b'a'],
            &[5, 0, 3, 7, 1, 1, b'a'],
            &[5, 0, 9, 7, 1, 1, b'a'],
            &[],
            &[0],
        ] {
            assert_eq!(message(UDHI, 0, octets).text().segment, None, "{octets:?}");
        }
        assert_eq!(message(UDHI, 4, &[9, 1]).text().payload, "0901");
    }
}
