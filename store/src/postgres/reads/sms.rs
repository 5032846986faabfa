//! Which queries answer the questions of SMS?

use engine::directory::sms::FoundParts;
use engine::ids::SmsId;
use engine::moment::Timestamp;
use engine::query::{Page, PageRequest};
use engine::sms::{PartsKey, Sms};

use crate::postgres::PostgresStore;
use crate::{ReadAnswer, SmsReads};

impl SmsReads for PostgresStore {
    fn sms(&self, _id: SmsId) -> ReadAnswer<Option<Sms>> {
        unimplemented!()
    }

    fn sms_of(&self, _device: u64, _page: PageRequest) -> ReadAnswer<Page<Sms>> {
        unimplemented!()
    }

    fn sms_of_parts(&self, _parts: PartsKey) -> ReadAnswer<FoundParts> {
        unimplemented!()
    }

    fn open_sms(&self, _device: u64, _max: u32) -> ReadAnswer<u32> {
        unimplemented!()
    }

    fn open_sms_of(&self, _device: u64, _max: u32) -> ReadAnswer<Vec<Sms>> {
        unimplemented!()
    }

    fn open_sms_by_message(&self, _keys: Vec<String>, _max: u32) -> ReadAnswer<Vec<Sms>> {
        unimplemented!()
    }

    fn sms_for_network(&self, _max: u32) -> ReadAnswer<Vec<Sms>> {
        unimplemented!()
    }

    fn sms_due(&self, _at: Timestamp, _max: u32) -> ReadAnswer<Vec<Sms>> {
        unimplemented!()
    }
}
