//! What are the schemas of names, ids and times? With the same bounds as their parsers.

use engine::ids::{ClientId, CustomerId, DeviceId, Endpoint, Iccid, Imsi, Msisdn};

use super::schema::Schema;
use crate::api::fields::LABEL_CHARACTERS_MAX;

/// What a plain name is made of.
const PLAIN: &str = "^[A-Za-z0-9._-]+$";

/// What a name in a URL is made of, `urn:` names included.
const NAME: &str = "^[A-Za-z0-9._:@+=-]+$";

/// Digits alone.
const DIGITS: &str = "^[0-9]+$";

/// A text without control characters.
pub(in crate::api) const PRINTABLE: &str = r"^[^\u0000-\u001F\u007F-\u009F]+$";

/// Such a text that has more than blanks.
const SAID: &str = concat!(
    r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F]",
    r"[^\u0000-\u001F\u007F-\u009F]*$"
);

/// What names a customer.
pub(in crate::api) fn customer_id() -> Schema {
    let id = Schema::text_of(1..=CustomerId::LENGTH_MAX).pattern(PLAIN);
    let id = id.but(CustomerId::RESERVED);
    id.example("acme")
}

/// What names an API client.
pub(in crate::api) fn client_id() -> Schema {
    let id = Schema::text_of(1..=ClientId::LENGTH_MAX).pattern(PLAIN);
    let id = id.but(ClientId::RESERVED);
    id.example("01935c5a-0000-7000-8000-0000000000c1")
}

/// What names a device.
pub(in crate::api) fn device_id() -> Schema {
    device_segment().but(DeviceId::RESERVED)
}

/// What stands for a device in a path. What is reserved is no device there, but another path.
pub(in crate::api) fn device_segment() -> Schema {
    let id = Schema::text_of(1..=DeviceId::LENGTH_MAX).pattern(NAME);
    id.example("meter-7")
}

/// What names a SIM.
pub(in crate::api) fn iccid() -> Schema {
    let id = Schema::text_of(1..=Iccid::LENGTH_MAX).pattern(NAME);
    let id = id.but(Iccid::RESERVED);
    id.example("8988280666000000001")
}

/// What a SIM calls its subscriber.
pub(in crate::api) fn imsi() -> Schema {
    let id = Schema::text_of(1..=Imsi::LENGTH_MAX).pattern(DIGITS);
    id.example("901405100000001")
}

/// A telephone number.
pub(in crate::api) fn msisdn() -> Schema {
    let id = Schema::text_of(1..=Msisdn::LENGTH_MAX).pattern(DIGITS);
    id.example("882285100000001")
}

/// What an LwM2M device calls itself.
pub(in crate::api) fn endpoint() -> Schema {
    let id = Schema::text_of(1..=Endpoint::LENGTH_MAX).pattern(PRINTABLE);
    id.example("meter-7")
}

/// An address of the internet, version 4 or 6.
pub(in crate::api) fn ip() -> Schema {
    let four = Schema::text().format("ipv4");
    let six = Schema::text().format("ipv6");
    Schema::any_of([four, six]).example("10.0.0.7")
}

/// The address of one host: not of a group, of all, or of none.
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

/// A time in UTC with milliseconds, as action requests show it.
pub(in crate::api) fn spaced() -> Schema {
    let time = Schema::text().pattern(r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{3}$");
    time.example("2026-11-24 12:00:00.000")
}

/// What ties together whatever one call set in motion.
pub(in crate::api) fn trace() -> Schema {
    Schema::uuid().example("01935c5a-0000-7000-8000-000000000002")
}

/// A time in UTC as callers of the administration log say it.
pub(in crate::api) fn log_time() -> Schema {
    // February ends with its 28th here: no pattern knows leap years, and whoever means the 29th may
    // say the midnight before or behind it.
    let long = r"(0[13578]|1[02])-(0[1-9]|[12]\d|3[01])";
    let short = r"(0[469]|11)-(0[1-9]|[12]\d|30)";
    let february = r"02-(0[1-9]|1\d|2[0-8])";
    let time = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{3})?Z?";
    let time = Schema::text().pattern(&format!(r"^\d{{4}}-({long}|{short}|{february})T{time}$"));
    time.example("2026-11-24T12:00:00.000")
}

/// What people call a thing.
pub(in crate::api) fn label() -> Schema {
    let label = Schema::text_of(1..=LABEL_CHARACTERS_MAX).pattern(SAID);
    label.example("Cellar")
}
