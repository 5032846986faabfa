//! What are the schemas of names, ids and times? With the same bounds as their parsers.

use engine::ids::{ClientId, CustomerId, DeviceId, Endpoint, Iccid, Imsi, Msisdn, SmsId};
use engine::limits::TAGS_MAX;
use engine::tags::TagText;

use super::node::Node;
use super::schema::Schema;
use crate::api::fields::LABEL_CHARACTERS_MAX;

/// The characters of a plain name.
const PLAIN: &str = "^[A-Za-z0-9._-]+$";

/// The characters of a name in a URL, `urn:` names included.
const NAME: &str = "^[A-Za-z0-9._:@+=-]+$";

/// Only digits.
const DIGITS: &str = "^[0-9]+$";

/// A text without control characters.
pub(in crate::api) const PRINTABLE: &str = r"^[^\u0000-\u001F\u007F-\u009F]+$";

/// Such a text with at least one character that is not blank.
const NOT_BLANK: &str = concat!(
    r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F]",
    r"[^\u0000-\u001F\u007F-\u009F]*$"
);

/// The id of a customer.
pub(in crate::api) fn customer_id() -> Schema {
    let id = Schema::text_of(1..=CustomerId::LENGTH_MAX).pattern(PLAIN);
    let id = id.but(CustomerId::RESERVED);
    id.example("acme")
}

/// The id of an API client.
pub(in crate::api) fn client_id() -> Schema {
    let id = Schema::text_of(1..=ClientId::LENGTH_MAX).pattern(PLAIN);
    let id = id.but(ClientId::RESERVED);
    id.example("01935c5a-0000-7000-8000-0000000000c1")
}

/// The id of a device.
pub(in crate::api) fn device_id() -> Schema {
    device_segment().but(DeviceId::RESERVED)
}

/// The id of a device in a path. A reserved word is not an id there, but another path.
pub(in crate::api) fn device_segment() -> Schema {
    let id = Schema::text_of(1..=DeviceId::LENGTH_MAX).pattern(NAME);
    id.example("meter-7")
}

/// The ICCID of a SIM.
pub(in crate::api) fn iccid() -> Schema {
    let id = Schema::text_of(1..=Iccid::LENGTH_MAX).pattern(NAME);
    let id = id.but(Iccid::RESERVED);
    id.example("8988280666000000001")
}

/// The IMSI of a subscriber.
pub(in crate::api) fn imsi() -> Schema {
    let id = Schema::text_of(1..=Imsi::LENGTH_MAX).pattern(DIGITS);
    id.example("901405100000001")
}

/// The MSISDN: a telephone number.
pub(in crate::api) fn msisdn() -> Schema {
    let id = Schema::text_of(1..=Msisdn::LENGTH_MAX).pattern(DIGITS);
    id.example("882285100000001")
}

/// The endpoint name of an LwM2M device.
pub(in crate::api) fn endpoint() -> Schema {
    let id = Schema::text_of(1..=Endpoint::LENGTH_MAX).pattern(PRINTABLE);
    id.example("meter-7")
}

/// An IPv4 or IPv6 address.
pub(in crate::api) fn ip() -> Schema {
    let four = Schema::text().format("ipv4");
    let six = Schema::text().format("ipv6");
    Schema::any_of([four, six]).example("10.0.0.7")
}

/// The unicast address of a host: not multicast, broadcast or unspecified.
pub(in crate::api) fn host_ip() -> Schema {
    let four = Schema::text().format("ipv4");
    let four = four.unlike(r"^(22[4-9]|23\d)\.|^0\.0\.0\.0$|^255\.255\.255\.255$");
    let six = Schema::text().format("ipv6");
    let six = six.unlike("^[Ff]{2}[0-9A-Fa-f]{2}:|^[0:]+$");
    Schema::any_of([four, six]).example("10.0.0.7")
}

/// A time in UTC with milliseconds, as log entries and devices show it.
pub(in crate::api) fn instant() -> Schema {
    let time = Schema::text().format("date-time");
    time.example("2026-11-24T12:00:00.000Z")
}

/// The id of an SMS.
pub(in crate::api) fn sms_id() -> Schema {
    Schema::whole(0..=SmsId::MAX).example(890_590_445_567_283_u64)
}

/// A time in UTC, as SMS show it.
pub(in crate::api) fn sms_time() -> Schema {
    let time = Schema::text().pattern(r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$");
    time.example("2026-11-24 12:00:00")
}

/// A time in UTC with milliseconds, as action requests show it.
pub(in crate::api) fn spaced() -> Schema {
    let time = Schema::text().pattern(r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{3}$");
    time.example("2026-11-24 12:00:00.000")
}

/// The id shared by everything that one call causes.
pub(in crate::api) fn trace() -> Schema {
    Schema::uuid().example("01935c5a-0000-7000-8000-000000000002")
}

/// A time in UTC in the format of the administration log's parameters.
pub(in crate::api) fn log_time() -> Schema {
    // February ends on the 28th here, because no pattern knows leap years. A caller that needs the
    // 29th can give the midnight before or after it.
    let long = r"(0[13578]|1[02])-(0[1-9]|[12]\d|3[01])";
    let short = r"(0[469]|11)-(0[1-9]|[12]\d|30)";
    let february = r"02-(0[1-9]|1\d|2[0-8])";
    let time = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{3})?Z?";
    let time = Schema::text().pattern(&format!(r"^\d{{4}}-({long}|{short}|{february})T{time}$"));
    time.example("2026-11-24T12:00:00.000")
}

/// The tags of a device, each with such a value.
pub(in crate::api) fn tags(value: Schema) -> Schema {
    let example = Node::object().with("site", "berlin");
    let max = u64::try_from(TAGS_MAX).expect("a small bound");
    let tags = Schema::map(value).of_names(tag_text(), max);
    tags.example(example)
}

/// A key or a value of a tag.
pub(in crate::api) fn tag_text() -> Schema {
    let text = Schema::text_of(1..=TagText::LENGTH_MAX).pattern(PLAIN);
    text.example("berlin")
}

/// A tag as a filter.
pub(in crate::api) fn tag() -> Schema {
    let max = TagText::LENGTH_MAX;
    let tag = Schema::text().pattern(&format!(
        "^[A-Za-z0-9._-]{{1,{max}}}:[A-Za-z0-9._-]{{1,{max}}}$"
    ));
    tag.example("site:berlin")
}

/// A display name.
pub(in crate::api) fn label() -> Schema {
    let label = Schema::text_of(1..=LABEL_CHARACTERS_MAX).pattern(NOT_BLANK);
    label.example("Cellar")
}
