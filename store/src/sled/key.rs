//! What is the key of a row? The only place where keys are built and read.
//!
//! A key is one byte for its table and then its parts, so that the order of keys is the order of
//! what they mean: numbers are big-endian, and a text that is not the last part ends with a zero
//! byte, which no id contains. Ids sort by the time they were made (UUID version 7, RFC 9562
//! section 5.7): their first six bytes are the milliseconds.

pub(crate) mod action;
pub(crate) mod bootstrap;
pub(crate) mod counted;
pub(crate) mod definition;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod firmware;
pub(crate) mod idempotency;
pub(crate) mod job;
pub(crate) mod log;
pub(crate) mod outbox;
pub(crate) mod schedule;
pub(crate) mod sms;
pub(crate) mod token;

use std::ops::Range;

use engine::change::{Counter, Fence, UniqueName};
use engine::customer::ClientOwner;
use engine::ids::{ClientId, CustomerId};
use engine::moment::Timestamp;
use engine::setting::SettingName;

use crate::record::code;

/// The bytes of a key, or a prefix of keys.
pub(crate) type Key = Vec<u8>;

/// The most milliseconds that the first six bytes of an id can hold.
const ID_MS_MAX: i64 = (1 << 48) - 1;

/// The kind of name that an endpoint name is.
const ENDPOINT: u8 = 4;

/// The kind of name that is ICCID, endpoint name and PSK identity of one device.
const COMMON: u8 = 7;

/// A kind of row. The number is the first byte of its keys and never changes its meaning.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub(crate) enum Table {
    Format = 1,
    Epoch = 2,
    Counter = 3,
    Customer = 4,
    Client = 5,
    ClientOfOwner = 6,
    Token = 7,
    TokenOfClient = 8,
    TokenByExpiry = 9,
    Setting = 10,
    Name = 11,
    Device = 12,
    DeviceOfCustomer = 13,
    Record = 14,
    // 15 listed the registered devices, which their records say as well.
    Pending = 16,
    Action = 17,
    ActionOfCustomer = 18,
    ActionOfDevice = 19,
    // 20 listed each final request, up to format 12.
    // 21 held the entries of format 1, which were not ordered by kind.
    // 22 and 23 listed each entry by its SIM and by its age, up to format 7.
    RemovedLog = 24,
    Piece = 25,
    EntryPayload = 26,
    ActionOfCustomerByUpdate = 27,
    // 28 listed the requests of a device by their last change, up to format 12.
    Idempotency = 29,
    IdempotencyByAge = 30,
    // 31 and 32 held single events and their ages, up to format 6.
    // 33 and 34 held each last value and their number by device, up to format 11.
    Entry = 35,
    EntryCount = 36,
    DeviceInLog = 37,
    DevicesCounted = 38,
    RemovedHistory = 39,
    Definition = 40,
    DefinitionText = 41,
    RemovedText = 42,
    Destination = 43,
    DestinationOfCustomer = 44,
    NewestNumber = 45,
    // 46 held the events that waited for delivery, up to format 6.
    Tally = 47,
    Cursor = 48,
    Retry = 49,
    Dead = 50,
    DeadByAge = 51,
    RemovedDestination = 52,
    Address = 53,
    EventBlock = 54,
    HeadPage = 55,
    HeadCheckpoint = 56,
    RemovedEvents = 57,
    LastGroup = 58,
    ValuePage = 59,
    DeviceOfTag = 60,
    DevicesOfTagCounted = 61,
    EntriesByAge = 62,
    FormerSim = 63,
    WakeUpSms = 64,
    SmsOfMessage = 65,
    FinalByAge = 66,
    Job = 70,
    JobRequest = 71,
    JobPart = 72,
    JobOfCustomer = 73,
    JobsCounted = 74,
    RunningJob = 75,
    RemovedJob = 76,
    Schedule = 77,
    ScheduleContents = 78,
    Sms = 80,
    SmsOfId = 81,
    SmsForNetwork = 82,
    SmsDue = 83,
    SmsOpen = 84,
    SmsOfParts = 85,
    SmsCounted = 86,
    RemovedSms = 87,
    BootstrapConfigOfCustomer = 90,
    BootstrapConfigOfDevice = 91,
    Bootstrap = 92,
    FirmwareImage = 96,
    Campaign = 97,
    OpenCampaign = 98,
    CampaignDevice = 99,
    CampaignDevicesCounted = 100,
    ServerKey = 104,
    Migration = 105,
}

impl Table {
    /// Every table.
    pub(crate) const ALL: [Self; 82] = [
        Self::Format,
        Self::Epoch,
        Self::Counter,
        Self::Customer,
        Self::Client,
        Self::ClientOfOwner,
        Self::Token,
        Self::TokenOfClient,
        Self::TokenByExpiry,
        Self::Setting,
        Self::Name,
        Self::Device,
        Self::DeviceOfCustomer,
        Self::Record,
        Self::Pending,
        Self::Action,
        Self::ActionOfCustomer,
        Self::ActionOfDevice,
        Self::FinalByAge,
        Self::RemovedLog,
        Self::Piece,
        Self::EntryPayload,
        Self::ActionOfCustomerByUpdate,
        Self::Idempotency,
        Self::IdempotencyByAge,
        Self::ValuePage,
        Self::Entry,
        Self::EntryCount,
        Self::DeviceInLog,
        Self::DevicesCounted,
        Self::RemovedHistory,
        Self::Definition,
        Self::DefinitionText,
        Self::RemovedText,
        Self::Destination,
        Self::DestinationOfCustomer,
        Self::NewestNumber,
        Self::Tally,
        Self::Cursor,
        Self::Retry,
        Self::Dead,
        Self::DeadByAge,
        Self::RemovedDestination,
        Self::Address,
        Self::EventBlock,
        Self::HeadPage,
        Self::HeadCheckpoint,
        Self::RemovedEvents,
        Self::LastGroup,
        Self::DeviceOfTag,
        Self::DevicesOfTagCounted,
        Self::EntriesByAge,
        Self::FormerSim,
        Self::WakeUpSms,
        Self::Job,
        Self::JobRequest,
        Self::JobPart,
        Self::JobOfCustomer,
        Self::JobsCounted,
        Self::RunningJob,
        Self::RemovedJob,
        Self::Schedule,
        Self::ScheduleContents,
        Self::Sms,
        Self::SmsOfId,
        Self::SmsForNetwork,
        Self::SmsDue,
        Self::SmsOpen,
        Self::SmsOfMessage,
        Self::SmsOfParts,
        Self::SmsCounted,
        Self::RemovedSms,
        Self::BootstrapConfigOfCustomer,
        Self::BootstrapConfigOfDevice,
        Self::Bootstrap,
        Self::FirmwareImage,
        Self::Campaign,
        Self::OpenCampaign,
        Self::CampaignDevice,
        Self::CampaignDevicesCounted,
        Self::ServerKey,
        Self::Migration,
    ];

    /// The table of a key.
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        let (number, _) = key.split_first()?;
        Self::ALL.into_iter().find(|table| *table as u8 == *number)
    }

    /// The prefix of all its keys.
    pub(crate) fn prefix(self) -> Key {
        Builder::of(self).end()
    }
}

/// A key under construction.
struct Builder(Key);

impl Builder {
    fn of(table: Table) -> Self {
        let mut key = Vec::with_capacity(48);
        key.push(table as u8);
        Self(key)
    }

    /// Appends a text that is followed by more parts.
    fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).byte(0)
    }

    fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends an instant; the flipped sign bit makes times before the epoch sort first.
    fn instant(self, at: Timestamp) -> Self {
        let ordered = at.as_ms().cast_unsigned() ^ (1 << 63);
        self.bytes(&ordered.to_be_bytes())
    }

    fn end(self) -> Key {
        self.0
    }
}

/// The row with the format of the whole store.
pub(crate) fn format() -> Key {
    Builder::of(Table::Format).end()
}

/// The row with the number of the last group of commits.
pub(crate) fn last_group() -> Key {
    Builder::of(Table::LastGroup).end()
}

/// The row with the private key of the service.
pub(crate) fn server_key() -> Key {
    Builder::of(Table::ServerKey).end()
}

/// The row with the place that a migration into this store has reached.
pub(crate) fn migration() -> Key {
    Builder::of(Table::Migration).end()
}

/// The newest epoch begun; the prefix of the keys of the epochs of owners.
pub(crate) fn epoch_begun() -> Key {
    Builder::of(Table::Epoch).end()
}

/// The epoch in which an owner last wrote.
pub(crate) fn epoch(Fence(number): Fence) -> Key {
    append(epoch_begun(), &number.to_be_bytes())
}

/// A count.
pub(crate) fn counter(counter: &Counter) -> Key {
    match counter {
        Counter::CustomerActions {
            customer,
            protocol,
            status,
        } => Builder::of(Table::Counter)
            .byte(1)
            .text(customer.as_str())
            .byte(code::of_protocol(*protocol))
            .byte(code::of_status(*status))
            .end(),
        // 2 counted the requests of each device, up to format 12.
        Counter::Devices(customer) => Builder::of(Table::Counter)
            .byte(3)
            .text(customer.as_str())
            .end(),
        Counter::CampaignDevices { campaign, state } => firmware::counted(*campaign, *state),
    }
}

/// The number of customers, which the store maintains itself.
pub(crate) fn customers_counted() -> Key {
    Builder::of(Table::Counter).byte(4).end()
}

/// A customer.
pub(crate) fn customer(id: &CustomerId) -> Key {
    Builder::of(Table::Customer)
        .bytes(id.as_str().as_bytes())
        .end()
}

/// The prefix of the keys of customers.
pub(crate) fn customers() -> Key {
    Builder::of(Table::Customer).end()
}

/// An API client.
pub(crate) fn client(id: &ClientId) -> Key {
    Builder::of(Table::Client)
        .bytes(id.as_str().as_bytes())
        .end()
}

/// The prefix of the keys of API clients.
pub(crate) fn clients() -> Key {
    Builder::of(Table::Client).end()
}

/// Index: an API client of an owner.
pub(crate) fn client_of(owner: &ClientOwner, client: &ClientId) -> Key {
    append(clients_of(owner), client.as_str().as_bytes())
}

/// The prefix of the keys of an owner's API clients. No customer has an empty id.
pub(crate) fn clients_of(owner: &ClientOwner) -> Key {
    let id = match owner {
        ClientOwner::Customer(id) => id.as_str(),
        ClientOwner::Network => "",
    };
    Builder::of(Table::ClientOfOwner).text(id).end()
}

/// A setting.
pub(crate) fn setting(customer: &CustomerId, name: SettingName) -> Key {
    append(settings_of(customer), &[code::of_setting(name)])
}

/// The prefix of the keys of all settings.
pub(crate) fn settings() -> Key {
    Builder::of(Table::Setting).end()
}

/// The prefix of the keys of a customer's settings.
pub(crate) fn settings_of(customer: &CustomerId) -> Key {
    Builder::of(Table::Setting).text(customer.as_str()).end()
}

/// The row that exists while a name is taken. For a customer, an API client or a device that is its
/// own row.
pub(crate) fn name(name: &UniqueName) -> Key {
    match name {
        UniqueName::Customer(id) => customer(id),
        UniqueName::Client(id) => client(id),
        UniqueName::Device(key) => device::device(*key),
        UniqueName::Iccid(iccid) => device_name(1, iccid.as_str()),
        UniqueName::Imsi(imsi) => device_name(2, imsi.as_str()),
        UniqueName::Msisdn(msisdn) => device_name(3, msisdn.as_str()),
        UniqueName::Endpoint(endpoint) => device_name(ENDPOINT, endpoint.as_str()),
        UniqueName::PskIdentity(identity) => device_name(5, identity),
        UniqueName::PublicKey(key) => device_name_of(6, key.point()),
        UniqueName::Address { ip, .. } => device::at(*ip),
    }
}

/// The row that exists while a device has a text as its ICCID, endpoint name and PSK identity; none
/// of these has a row of its own then.
pub(crate) fn common_name(text: &str) -> Key {
    device_name(COMMON, text)
}

/// The row that takes a name as well.
pub(crate) fn common_name_of(name: &UniqueName) -> Option<Key> {
    match name {
        UniqueName::Iccid(iccid) => Some(common_name(iccid.as_str())),
        UniqueName::Endpoint(endpoint) => Some(common_name(endpoint.as_str())),
        UniqueName::PskIdentity(identity) => Some(common_name(identity)),
        UniqueName::Customer(_)
        | UniqueName::Client(_)
        | UniqueName::Device(_)
        | UniqueName::Imsi(_)
        | UniqueName::Msisdn(_)
        | UniqueName::PublicKey(_)
        | UniqueName::Address { .. } => None,
    }
}

/// The prefixes of the rows of endpoint names.
pub(crate) fn endpoints() -> [Key; 2] {
    [device_name(ENDPOINT, ""), common_name("")]
}

/// A further piece of a value that is too large for one row.
pub(crate) fn piece(of: &[u8], number: u16) -> Key {
    Builder::of(Table::Piece)
        .bytes(of)
        .bytes(&number.to_be_bytes())
        .end()
}

/// Where the ids made at an instant or later begin, under a prefix.
pub(crate) fn ids_from(prefix: Key, at: Timestamp) -> Key {
    let ms = at.as_ms().clamp(0, ID_MS_MAX).cast_unsigned();
    append(prefix, &ms.to_be_bytes()[2..])
}

/// Where the ids made after an instant begin, under a prefix.
pub(crate) fn ids_after(prefix: Key, at: Timestamp) -> Key {
    if at.as_ms() >= ID_MS_MAX {
        return behind(prefix);
    }
    ids_from(prefix, at.plus_ms(1))
}

/// The first key after all keys with a prefix.
pub(crate) fn behind(mut prefix: Key) -> Key {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            break;
        }
    }
    prefix
}

/// Reads an instant from its bytes in a key.
pub(crate) fn instant_of(bytes: [u8; 8]) -> Timestamp {
    Timestamp::from_ms((u64::from_be_bytes(bytes) ^ (1 << 63)).cast_signed())
}

/// Appends a part to a key.
pub(crate) fn append(mut key: Key, part: &[u8]) -> Key {
    key.extend_from_slice(part);
    key
}

/// The prefix of the rows of a customer in a table whose keys begin with it.
pub(crate) fn of_customer(table: Table, customer: &CustomerId) -> Key {
    Builder::of(table).text(customer.as_str()).end()
}

/// The range of the keys with a prefix.
pub(crate) fn range_of(prefix: Key) -> Range<Key> {
    prefix.clone()..behind(prefix)
}

/// The part of a key after a prefix; empty if the key is shorter.
pub(crate) fn rest_of<'k>(key: &'k [u8], beginning: &[u8]) -> &'k [u8] {
    key.get(beginning.len()..).unwrap_or_default()
}

/// The part of a key up to and including its customer, and the customer, which follows the prefix
/// and is followed by more.
pub(crate) fn customer_in<'k>(key: &'k [u8], beginning: &[u8]) -> Option<(&'k [u8], CustomerId)> {
    let rest = rest_of(key, beginning);
    let length = rest.iter().position(|byte| *byte == 0)?;
    let customer = std::str::from_utf8(rest.get(..length)?).ok()?;
    let part = key.get(..=beginning.len() + length)?;
    Some((part, CustomerId::parse(customer).ok()?))
}

/// The 16 bytes of an id at the end of a key.
pub(crate) fn last_id(key: &[u8]) -> Option<[u8; 16]> {
    key.last_chunk().copied()
}

/// When an id was made.
pub(crate) fn made_at(id: [u8; 16]) -> Timestamp {
    let [a, b, c, d, e, f, ..] = id;
    Timestamp::from_ms(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// The 16 bytes of an id at the start of the part of a key after its prefix.
pub(crate) fn first_id(rest: &[u8]) -> Option<[u8; 16]> {
    rest.first_chunk().copied()
}

/// An API client, from its key in the index by owner.
pub(crate) fn client_from_owner(of_owner: &[u8], clients: &[u8]) -> Option<ClientId> {
    let text = std::str::from_utf8(rest_of(of_owner, clients)).ok()?;
    ClientId::parse(text).ok()
}

fn device_name(kind: u8, text: &str) -> Key {
    device_name_of(kind, text.as_bytes())
}

fn device_name_of(kind: u8, name: &[u8]) -> Key {
    Builder::of(Table::Name).byte(kind).bytes(name).end()
}

#[cfg(test)]
mod tests {
    use engine::action::{Protocol, Status};
    use engine::ids::{ActionId, DeviceId, DeviceKey, JobId, SmsId};
    use engine::tags::Tag;

    use super::*;
    use crate::record::device_flags::DeviceFlags;

    fn customer_id(text: &str) -> CustomerId {
        CustomerId::parse(text).unwrap()
    }

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn a_prefix_of_one_customer_excludes_a_customer_with_a_longer_id() {
        let (short, long) = (customer_id("acme"), customer_id("acme-2"));
        let script = ClientId::parse("script").unwrap();
        let of = |customer: &CustomerId| clients_of(&ClientOwner::Customer(customer.clone()));
        let key = client_of(&ClientOwner::Customer(long.clone()), &script);
        assert!(!key.starts_with(&of(&short)));
        assert!(!key.starts_with(&clients_of(&ClientOwner::Network)));
        assert!(key.starts_with(&of(&long)));
        assert_eq!(client_from_owner(&key, &of(&long)), Some(script));
        let all = Builder::of(Table::ClientOfOwner).end();
        let part = of(&long);
        assert_eq!(customer_in(&key, &all), Some((part.as_slice(), long)));
        assert_eq!(customer_in(&all, &all), None);
    }

    #[test]
    fn instants_sort_by_time_even_before_the_epoch() {
        let keys: Vec<Key> = [i64::MIN, -1, 0, 1, 256, i64::MAX]
            .map(|at| token::expiring_from(ms(at)))
            .into();
        assert!(keys.is_sorted());
        assert!(keys.iter().all(|key| key.starts_with(&token::by_expiry())));
    }

    #[test]
    fn a_window_of_ids_includes_both_its_ends() {
        let mut m = engine::moment::Moment::new(ms(1_000), 7);
        let id = append(job::jobs(), m.uuid().as_bytes());
        let within = |from, until| {
            let (first, end) = (
                ids_from(job::jobs(), ms(from)),
                ids_after(job::jobs(), ms(until)),
            );
            first <= id && id < end
        };
        assert!(within(1_000, 1_000) && within(-5, i64::MAX) && within(0, 1_000));
        assert!(!within(1_001, i64::MAX) && !within(0, 999) && !within(i64::MIN, -1));
    }

    #[test]
    fn the_next_prefix_follows_all_keys_of_a_prefix() {
        assert_eq!(behind(vec![1, 2]), vec![1, 3]);
        assert_eq!(behind(vec![1, 0xff, 0xff]), vec![2]);
    }

    #[test]
    fn tables_do_not_touch() {
        let (acme, device) = (customer_id("acme"), DeviceKey::from_bytes([0xff; 16]));
        let tag = Tag::parse("site:berlin").unwrap();
        let meter = DeviceId::parse("meter").unwrap();
        let sms_id = SmsId::from_number(SmsId::MAX).unwrap();
        let prefixes = [
            customers(),
            clients_of(&ClientOwner::Customer(acme.clone())),
            device::devices_of(&acme, DeviceFlags::NONE),
            device::records(),
            device::tagged(&acme, &tag),
            device::at([10, 0, 0, 1].into()),
            action::all_pending(),
            action::final_from_bucket(0),
            log::from_bucket(0),
            log::removed(),
            event::removed(),
            event::blocks(),
            event::head_pages(),
            event::removed_customers(),
            outbox::by_age(),
            outbox::removed(),
            definition::removed(),
            job::jobs(),
            job::parts(),
            job::all_running(),
            job::all_removed(),
            sms::all_ids(),
            sms::for_network(),
            sms::due(),
            sms::all_removed(),
        ];
        let keys = [
            customer(&acme),
            counter(&Counter::Devices(acme.clone())),
            device::counted(&acme, DeviceFlags::NONE),
            device::tagged_device(&acme, &tag, &meter),
            device::tagged_counted(&acme, &tag),
            customers_counted(),
            device::record(device),
            device::at_address([10, 0, 0, 1].into(), device),
            action::action_of_device(
                device,
                Protocol::Udp,
                Status::Scheduled,
                ActionId::from_bytes([0xff; 16]),
            ),
            action::final_by_age(0, &acme),
            log::removed_of(&acme),
            event::removed_of(device),
            event::newest_number(),
            event::checkpoint(),
            event::blocks_of(&acme),
            event::head_page(0),
            event::removed_of_customer(&acme),
            last_group(),
            definition::removed_text([0xff; 16]),
            job::job(JobId::from_bytes([0xff; 16])),
            job::request(JobId::from_bytes([0xff; 16])),
            job::part(JobId::from_bytes([0xff; 16]), u32::MAX),
            job::of_customer(&acme, JobId::from_bytes([0xff; 16])),
            job::counted(&acme),
            job::running(JobId::from_bytes([0xff; 16])),
            job::removed(JobId::from_bytes([0xff; 16])),
            sms::sms(u64::MAX, sms_id),
            sms::of_id(sms_id),
            sms::waiting(sms_id),
            sms::due_at(ms(i64::MAX), sms_id),
            sms::open(u64::MAX, sms_id),
            sms::of_message("F3A1", sms_id),
            sms::counted(u64::MAX),
            sms::removed(u64::MAX),
            server_key(),
        ];
        for key in &keys {
            assert!(
                prefixes
                    .iter()
                    .filter(|prefix| key.starts_with(prefix))
                    .count()
                    <= 1
            );
            assert_eq!(keys.iter().filter(|other| *other == key).count(), 1);
        }
    }
}
