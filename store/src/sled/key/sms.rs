//! The keys of SMS. An SMS is under the integer id of its device, which no later device has.

use engine::ids::SmsId;
use engine::moment::Timestamp;
use engine::sms::PartsKey;

use super::{Builder, Key, Table, append};

/// An SMS.
pub(crate) fn sms(device: u64, id: SmsId) -> Key {
    append(of_device(device), &bytes(id))
}

/// The prefix of the keys of the SMS of a device, the oldest first.
pub(crate) fn of_device(device: u64) -> Key {
    numbered(Table::Sms, device)
}

/// Index: the device of an SMS, or of a part of one, and the id of the SMS.
pub(crate) fn of_id(id: SmsId) -> Key {
    append(all_ids(), &bytes(id))
}

/// The prefix of the keys of the index by id.
pub(crate) fn all_ids() -> Key {
    Table::SmsOfId.prefix()
}

/// Where the ids of this instant or later begin in the index by id.
pub(crate) fn ids_from(at: Timestamp) -> Key {
    of_id(SmsId::first_at(at))
}

/// Index: an SMS that the network has something to do for.
pub(crate) fn waiting(id: SmsId) -> Key {
    append(for_network(), &bytes(id))
}

/// The prefix of the keys of the SMS that the network has something to do for.
pub(crate) fn for_network() -> Key {
    Table::SmsForNetwork.prefix()
}

/// Index: an SMS whose validity is over at an instant.
pub(crate) fn due_at(at: Timestamp, id: SmsId) -> Key {
    append(due_from(at), &bytes(id))
}

/// Where the SMS begin whose validity is over at an instant or later.
pub(crate) fn due_from(at: Timestamp) -> Key {
    Builder::of(Table::SmsDue).instant(at).end()
}

/// The prefix of the keys of the SMS by the end of their validity.
pub(crate) fn due() -> Key {
    Table::SmsDue.prefix()
}

/// Index: an SMS to a device whose status is not final.
pub(crate) fn open(device: u64, id: SmsId) -> Key {
    append(open_of(device), &bytes(id))
}

/// The prefix of the keys of the SMS to a device whose status is not final.
pub(crate) fn open_of(device: u64) -> Key {
    numbered(Table::SmsOpen, device)
}

/// Index: an SMS without a final status of which a part was accepted under a message id.
pub(crate) fn of_message(message_id_key: &str, id: SmsId) -> Key {
    append(with_message(message_id_key), &bytes(id))
}

/// The prefix of the keys of the SMS without a final status with a message id.
pub(crate) fn with_message(message_id_key: &str) -> Key {
    Builder::of(Table::SmsOfMessage).text(message_id_key).end()
}

/// Index: an SMS that wakes a device.
pub(crate) fn wake_up(device: u64, id: SmsId) -> Key {
    append(wake_ups_of(device), &bytes(id))
}

/// The prefix of the keys of the SMS that wake a device, the oldest first.
pub(crate) fn wake_ups_of(device: u64) -> Key {
    numbered(Table::WakeUpSms, device)
}

/// Index: the last SMS of a device with these parts.
pub(crate) fn of_parts(parts: PartsKey) -> Key {
    let key = numbered(Table::SmsOfParts, parts.device_number);
    append(append(key, &[parts.total]), &parts.identifier.to_be_bytes())
}

/// The number of SMS of a device.
pub(crate) fn counted(device: u64) -> Key {
    numbered(Table::SmsCounted, device)
}

/// The mark of a removed device that has SMS.
pub(crate) fn removed(device: u64) -> Key {
    numbered(Table::RemovedSms, device)
}

/// The prefix of the marks of removed devices.
pub(crate) fn all_removed() -> Key {
    Table::RemovedSms.prefix()
}

/// The integer id of the device of a mark.
pub(crate) fn device_of_removed(mark: &[u8]) -> Option<u64> {
    last_number(mark)
}

/// The id at the end of a key.
pub(crate) fn last_sms(key: &[u8]) -> Option<SmsId> {
    SmsId::from_number(last_number(key)?)
}

/// The integer id of the device of an SMS, and its id, from its key.
pub(crate) fn place_of(key: &[u8]) -> Option<(u64, SmsId)> {
    let device = key.get(1..9)?.first_chunk()?;
    Some((u64::from_be_bytes(*device), last_sms(key)?))
}

fn last_number(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

fn bytes(id: SmsId) -> [u8; 8] {
    id.number().to_be_bytes()
}

fn numbered(table: Table, device: u64) -> Key {
    Builder::of(table).bytes(&device.to_be_bytes()).end()
}
