//! What is asked of SMS? By the API, by the network, and by what settles them.

use engine::directory::sms::FoundParts;
use engine::ids::SmsId;
use engine::moment::Timestamp;
use engine::query::{Page, PageRequest};
use engine::sms::{PartsKey, Sms};

use crate::ReadAnswer;

/// The queries of SMS. Those of a removed device are not found.
pub trait SmsReads: Send + Sync {
    /// The SMS with this id, or with a part of this id.
    fn sms(&self, id: SmsId) -> ReadAnswer<Option<Sms>>;

    /// The SMS of the device with this integer id, newest first.
    fn sms_of(&self, device: u64, page: PageRequest) -> ReadAnswer<Page<Sms>>;

    /// The last SMS of a device with these parts.
    fn sms_of_parts(&self, parts: PartsKey) -> ReadAnswer<FoundParts>;

    /// How many SMS to the device with this integer id have no final status, up to `max`.
    fn open_sms(&self, device: u64, max: u32) -> ReadAnswer<u32>;

    /// The SMS to the device with this integer id that have no final status, the oldest first, at
    /// most `max`.
    fn open_sms_of(&self, device: u64, max: u32) -> ReadAnswer<Vec<Sms>>;

    /// The SMS to devices without a final status of which a part was accepted under a message id
    /// that has one of these keys (`Sms::message_id_keys`), at most `max` for each.
    fn open_sms_by_message(&self, keys: Vec<String>, max: u32) -> ReadAnswer<Vec<Sms>>;

    /// SMS for which the network has something to do, the oldest first, at most `max`.
    fn sms_for_network(&self, max: u32) -> ReadAnswer<Vec<Sms>>;

    /// SMS whose validity is over at an instant, at most `max`.
    fn sms_due(&self, at: Timestamp, max: u32) -> ReadAnswer<Vec<Sms>>;
}
