//! What does a delivery receipt say (SMPP 3.4 section 5.2.12 and appendix B)?
//!
//! The optional parameters are clear; the text is vendor specific, and most SMS centres write it as
//! the appendix does: `id:IIIIIIIIII sub:SSS dlvrd:DDD submit date:YYMMDDhhmm done date:YYMMDDhhmm
//! stat:DDDDDDD err:EEE text: ...`.

use super::message::ShortMessage;

/// A delivery receipt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Receipt {
    /// The id that the SMS centre gave the message.
    pub message_id: Option<Box<str>>,
    /// The reference that the message was submitted with.
    pub user_message_reference: Option<u16>,
    /// The state of the message, if it is one of SMPP.
    pub state: Option<ReceiptState>,
    /// The state and the error in words.
    pub description: Box<str>,
}

/// The state of a message (SMPP 3.4 section 5.2.28).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReceiptState {
    /// It is on its way, or was accepted on behalf of the recipient.
    Enroute,
    /// It was delivered.
    Delivered,
    /// Its validity ended.
    Expired,
    /// It was deleted, could not be delivered, or was rejected.
    Undelivered,
}

impl Receipt {
    /// Reads a receipt.
    pub fn of(message: &ShortMessage) -> Self {
        let text = String::from_utf8_lossy(&message.octets);
        let stat = field(&text, "stat:").unwrap_or_default();
        let of_text = field(&text, "id:").map(Box::from);
        let message_id = message.receipted_message_id.clone().or(of_text);
        let state = message.message_state;
        let description = match field(&text, "err:") {
            Some(error) if !stat.is_empty() => format!("{stat}, error {error}"),
            _ => match (stat, state) {
                ("", Some(state)) => format!("message_state {state}"),
                (stat, _) => stat.to_owned(),
            },
        };
        Self {
            message_id: message_id.filter(|id| !id.is_empty()),
            user_message_reference: message.user_message_reference,
            state: state.map_or_else(|| of_word(stat), of_number),
            description: description.into(),
        }
    }
}

/// Whether two texts are the same message id, which SMS centres pad with zeros.
pub fn is_same_id(one: &str, other: &str) -> bool {
    let (one, other) = (without_padding(one), without_padding(other));
    !one.is_empty() && one.eq_ignore_ascii_case(other)
}

/// Whether two texts are the same message id, one in decimal and the other in hexadecimal: SMS
/// centres write it one way in the response and the other way in the receipt.
pub fn is_same_id_otherwise_written(one: &str, other: &str) -> bool {
    let number = |text: &str, radix| u64::from_str_radix(without_padding(text), radix).ok();
    [(10, 16), (16, 10)].into_iter().any(|(of_one, of_other)| {
        let one = number(one, of_one);
        one.is_some() && one == number(other, of_other)
    })
}

/// The one way in which ids that [`is_same_id`] holds for are written; none for an id of zeros.
pub fn message_id_key(id: &str) -> Option<String> {
    let bare = without_padding(id);
    (!bare.is_empty()).then(|| bare.to_ascii_uppercase())
}

/// The keys of a message id and of those that [`is_same_id_otherwise_written`] holds for.
pub fn message_id_keys(id: &str) -> Vec<String> {
    let bare = without_padding(id);
    let in_hexadecimal = bare.parse::<u64>().map(|number| format!("{number:X}"));
    let in_decimal = u64::from_str_radix(bare, 16).map(|number| number.to_string());
    let others = [in_hexadecimal.ok(), in_decimal.ok()].into_iter().flatten();
    let mut keys: Vec<String> = message_id_key(id).into_iter().chain(others).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn without_padding(id: &str) -> &str {
    id.trim().trim_start_matches('0')
}

/// The word behind a name, wherever upper and lower case put it.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let behind = starts.into_iter().find_map(|at| {
        let is_begin = at == 0 || text.as_bytes().get(at - 1) == Some(&b' ');
        let (found, behind) = text.get(at..)?.split_at_checked(name.len())?;
        (is_begin && found.eq_ignore_ascii_case(name)).then_some(behind)
    })?;
    // What the sender wrote follows `text:`, and is none of ours.
    behind.split([' ', '\0']).next()
}

fn of_number(state: u8) -> Option<ReceiptState> {
    match state {
        1 | 6 => Some(ReceiptState::Enroute),
        2 => Some(ReceiptState::Delivered),
        3 => Some(ReceiptState::Expired),
        4 | 5 | 8 => Some(ReceiptState::Undelivered),
        _ => None,
    }
}

fn of_word(stat: &str) -> Option<ReceiptState> {
    match stat.to_ascii_uppercase().as_str() {
        "ENROUTE" | "ACCEPTD" | "BUFFERD" => Some(ReceiptState::Enroute),
        "DELIVRD" => Some(ReceiptState::Delivered),
        "EXPIRED" => Some(ReceiptState::Expired),
        "DELETED" | "UNDELIV" | "REJECTD" => Some(ReceiptState::Undelivered),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(text: &str) -> Receipt {
        Receipt::of(&ShortMessage {
            octets: text.as_bytes().into(),
            ..ShortMessage::default()
        })
    }

    #[test]
    fn the_text_of_the_appendix_is_read() {
        let read = receipt(
            "id:00F3A1 sub:001 dlvrd:000 submit date:2611241200 done date:2611241201 \
             stat:UNDELIV err:011 text:id:7 stat:DELIVRD",
        );
        let expected = Receipt {
            message_id: Some("00F3A1".into()),
            user_message_reference: None,
            state: Some(ReceiptState::Undelivered),
            description: "UNDELIV, error 011".into(),
        };
        assert_eq!(read, expected);
        let states = [
            ("DELIVRD", Some(ReceiptState::Delivered)),
            ("expired", Some(ReceiptState::Expired)),
            ("ACCEPTD", Some(ReceiptState::Enroute)),
            ("UNKNOWN", None),
        ];
        for (stat, state) in states {
            assert_eq!(receipt(&format!("id:1 stat:{stat}")).state, state, "{stat}");
        }
    }

    #[test]
    fn parameters_go_before_the_text() {
        let read = Receipt::of(&ShortMessage {
            octets: b"id:1 stat:UNDELIV"[..].into(),
            receipted_message_id: Some("2".into()),
            message_state: Some(2),
            user_message_reference: Some(7),
            ..ShortMessage::default()
        });
        assert_eq!(read.message_id.as_deref(), Some("2"));
        assert_eq!(read.state, Some(ReceiptState::Delivered));
        assert_eq!(read.user_message_reference, Some(7));
    }

    #[test]
    fn text_without_fields_says_nothing() {
        for text in ["", "id:", "hello", "stat", "é id", "xid:7"] {
            let read = receipt(text);
            assert_eq!((read.message_id, read.state), (None, None), "{text}");
        }
    }

    #[test]
    fn an_id_is_the_same_with_padding_and_in_hexadecimal_and_decimal() {
        for (one, other) in [
            ("f3a1", "F3A1"),
            ("000062369", "62369"),
            ("0000f3a1", "F3a1"),
            ("a-b", "A-B"),
        ] {
            assert!(is_same_id(one, other), "{one} {other}");
            assert_eq!(message_id_key(one), message_id_key(other));
        }
        for (one, other) in [("F3A1", "62369"), ("62369", "00f3a1")] {
            assert!(is_same_id_otherwise_written(one, other), "{one} {other}");
            let key = message_id_key(one).unwrap();
            assert!(message_id_keys(other).contains(&key), "{one} {other}");
            assert!(!is_same_id(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "2"),
            ("a-b", "a-c"),
            ("0", "00"),
            ("", "0"),
            ("f3a1", "f3"),
        ] {
            let is_same = is_same_id(one, other) || is_same_id_otherwise_written(one, other);
            assert!(!is_same, "{one} {other}");
            let key = message_id_key(one);
            let is_found = key.is_some_and(|key| message_id_keys(other).contains(&key));
            assert!(!is_found, "{one} {other}");
        }
    }
}
