//! Which tables are written row by row, and with which statements?
//!
//! All rows of a table that a group of commits puts are one statement, whose parameters are an
//! array for each column. The rows of a statement are those of `unnest`, named `u`.

use std::fmt::Write;

use super::cell::ColumnType;

/// A table, or a way to write one. Rows are put in this order.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum SqlTable {
    Customer,
    ApiClient,
    AccessToken,
    Setting,
    Definition,
    CustomerBootstrapConfig,
    Device,
    DeviceName,
    DeviceTag,
    DeviceState,
    /// The flags of a device, which follow its state.
    DeviceFlags,
    DeviceBootstrapConfig,
    Bootstrap,
    KnownValue,
    /// Last known values to be removed.
    UnknownValue,
    DeviceCount,
    Action,
    ActionCount,
    Idempotency,
    LogEntry,
    /// The SIMs of entries about devices that do not exist: they were committed after its removal.
    SimOfEntry,
    FormerSim,
    Event,
    RemovedHistory,
    RemovedCustomer,
    RemovedDefinition,
    Destination,
    RemovedDestination,
    DestinationCursor,
    PendingRetry,
    DeadLetter,
    Job,
    JobRequest,
    JobPart,
    RemovedJob,
    Schedule,
    ScheduleContents,
    Sms,
    SmsId,
    SmsMessage,
    SmsParts,
    FirmwareImage,
    Campaign,
    CampaignDevice,
    CampaignDeviceCount,
    ShardEpoch,
}

/// How a table is written.
pub(super) struct Layout {
    /// Its name.
    pub(super) name: &'static str,
    /// Its columns; those of the key come first.
    pub(super) columns: &'static [(&'static str, ColumnType)],
    /// How many columns the key has.
    pub(super) keys: usize,
    put: Put,
    /// The column that expectations compare, as bytes; the column's place.
    compared: Option<(&'static str, usize)>,
}

/// What putting a row does.
enum Put {
    /// Inserts it, or replaces the columns that are no key.
    Replace,
    /// Inserts it, if a condition on `u` holds, or replaces these columns.
    Where(&'static str, &'static str),
    /// Another statement, with `{rows}` in place of `unnest(...) AS u(...)`.
    Statement(&'static str),
}

use ColumnType::{Bool, Bytes, Id, Ip, Number, Text, Time};

const RECORD: Option<(&str, usize)> = Some(("t.record", usize::MAX));

impl SqlTable {
    /// How it is written.
    pub(super) fn layout(self) -> Layout {
        use Put::{Replace, Statement, Where};
        let (name, columns, keys, put): (_, &'static [_], _, _) = match self {
            Self::Customer => ("customer", &[("id", Text), ("record", Bytes)], 1, Replace),
            Self::ApiClient => (
                "api_client",
                &[("id", Text), ("customer", Text), ("record", Bytes)],
                1,
                Replace,
            ),
            Self::AccessToken => (
                "access_token",
                &[
                    ("digest", Bytes),
                    ("client", Text),
                    ("expires_at", Time),
                    ("record", Bytes),
                ],
                1,
                Replace,
            ),
            Self::Setting => (
                "setting",
                &[("customer", Text), ("name", Number), ("record", Bytes)],
                2,
                Replace,
            ),
            Self::Definition => (
                "definition",
                &[
                    ("customer", Text),
                    ("object", Number),
                    ("major", Number),
                    ("minor", Number),
                    ("stored_at", Time),
                    ("record", Bytes),
                ],
                4,
                Replace,
            ),
            Self::CustomerBootstrapConfig => (
                "customer_bootstrap_config",
                &[("customer", Text), ("record", Bytes)],
                1,
                Replace,
            ),
            Self::Device => (
                "device",
                &[
                    ("key", Id),
                    ("customer", Text),
                    ("device_id", Text),
                    ("number", Number),
                    ("address", Ip),
                    ("record", Bytes),
                ],
                1,
                Replace,
            ),
            Self::DeviceName => (
                "device_name",
                &[("kind", Number), ("name", Bytes), ("device", Id)],
                2,
                Replace,
            ),
            Self::DeviceTag => (
                "device_tag",
                &[
                    ("customer", Text),
                    ("tag_key", Text),
                    ("tag_value", Text),
                    ("device_id", Text),
                    ("device", Id),
                ],
                4,
                Replace,
            ),
            Self::DeviceState => (
                "device_state",
                &[("device", Id), ("live", Bool), ("record", Bytes)],
                1,
                Replace,
            ),
            Self::DeviceFlags => (
                "device",
                &[("key", Id), ("flags", Number)],
                1,
                Statement(
                    "UPDATE device SET flags = u.flags FROM {rows} \
                     WHERE device.key = u.key AND device.flags <> u.flags",
                ),
            ),
            Self::DeviceBootstrapConfig => (
                "device_bootstrap_config",
                &[("device", Id), ("record", Bytes)],
                1,
                Replace,
            ),
            Self::Bootstrap => (
                "bootstrap",
                &[("device", Id), ("record", Bytes)],
                1,
                Replace,
            ),
            Self::KnownValue => (
                "known_value",
                &[
                    ("device", Id),
                    ("path", Bytes),
                    ("measured_at", Time),
                    ("record", Bytes),
                    ("values_max", Number),
                ],
                2,
                // A new path has room only while the device has fewer values than it may have.
                Statement(
                    "WITH put AS MATERIALIZED (SELECT u.*, EXISTS (SELECT FROM known_value k \
                       WHERE k.device = u.device AND k.path = u.path) AS is_known FROM {rows}), \
                     counted AS (SELECT device, count(*) FROM known_value WHERE device IN \
                       (SELECT device FROM put WHERE NOT is_known) GROUP BY device), \
                     placed AS (SELECT *, row_number() OVER (PARTITION BY device, is_known \
                       ORDER BY path) AS place FROM put) \
                     INSERT INTO known_value (device, path, measured_at, record) \
                     SELECT p.device, path, measured_at, record \
                     FROM placed p LEFT JOIN counted c ON c.device = p.device \
                     WHERE is_known OR coalesce(c.count, 0) + place <= values_max \
                     ON CONFLICT (device, path) DO UPDATE SET \
                       measured_at = excluded.measured_at, record = excluded.record \
                     WHERE known_value.measured_at <= excluded.measured_at",
                ),
            ),
            Self::UnknownValue => (
                "known_value",
                &[("device", Id), ("path", Bytes), ("measured_at", Time)],
                2,
                Statement(
                    "DELETE FROM known_value k USING {rows} WHERE k.device = u.device \
                     AND k.path = u.path AND k.measured_at <= u.measured_at",
                ),
            ),
            Self::DeviceCount => (
                "device_count",
                &[("customer", Text), ("slot", Number), ("count", Number)],
                2,
                Where("true", "count = device_count.count + excluded.count"),
            ),
            Self::Action => (
                "action",
                &[
                    ("id", Id),
                    ("customer", Text),
                    ("device", Id),
                    ("protocol", Number),
                    ("status", Number),
                    ("updated_at", Time),
                    ("record", Bytes),
                ],
                1,
                Replace,
            ),
            Self::ActionCount => (
                "action_count",
                &[
                    ("customer", Text),
                    ("protocol", Number),
                    ("status", Number),
                    ("slot", Number),
                    ("count", Number),
                ],
                4,
                Where("true", "count = action_count.count + excluded.count"),
            ),
            Self::Idempotency => (
                "idempotency",
                &[
                    ("key", Id),
                    ("device", Id),
                    ("device_number", Number),
                    ("made_at", Time),
                    ("record", Bytes),
                ],
                3,
                Replace,
            ),
            Self::LogEntry => (
                "log_entry",
                &[
                    ("customer", Text),
                    ("id", Id),
                    ("category", Number),
                    ("subject", Number),
                    ("device", Id),
                    ("record", Bytes),
                    ("payload", Bytes),
                ],
                2,
                Replace,
            ),
            Self::SimOfEntry => (
                "former_sim",
                &[
                    ("customer", Text),
                    ("iccid", Text),
                    ("device", Id),
                    ("last_entry", Id),
                ],
                3,
                Where(
                    "NOT EXISTS (SELECT FROM device d WHERE d.key = u.device) AND \
                     NOT EXISTS (SELECT FROM device_state s WHERE s.device = u.device)",
                    "last_entry = greatest(former_sim.last_entry, excluded.last_entry)",
                ),
            ),
            Self::FormerSim => (
                "former_sim",
                &[
                    ("customer", Text),
                    ("iccid", Text),
                    ("device", Id),
                    ("last_entry", Id),
                ],
                3,
                Replace,
            ),
            Self::RemovedHistory => (
                "removed_history",
                &[("device", Id), ("last_event", Number)],
                1,
                Replace,
            ),
            Self::RemovedCustomer => (
                "removed_customer",
                &[
                    ("customer", Text),
                    ("last_entry", Id),
                    ("last_event", Number),
                ],
                1,
                Replace,
            ),
            Self::RemovedDefinition => (
                "removed_definition",
                &[("id", Id), ("record", Bytes)],
                1,
                Replace,
            ),
            Self::RemovedDestination => ("removed_destination", &[("id", Id)], 1, Replace),
            Self::RemovedJob => ("removed_job", &[("id", Id)], 1, Replace),
            Self::Event => (
                "event",
                &[
                    ("id", Id),
                    ("sequence", Number),
                    ("customer", Text),
                    ("partition", Number),
                    ("device", Id),
                    ("event_type", Number),
                    ("lifecycle", Number),
                    ("record", Bytes),
                ],
                2,
                Replace,
            ),
            Self::Destination => (
                "destination",
                &[
                    ("id", Id),
                    ("customer", Text),
                    ("since", Number),
                    ("record", Bytes),
                ],
                1,
                // Whoever puts a removed one has not learned of the removal yet.
                Where(
                    "NOT EXISTS (SELECT FROM removed_destination r WHERE r.id = u.id)",
                    "record = excluded.record",
                ),
            ),
            Self::DestinationCursor => (
                "destination_cursor",
                &[
                    ("destination", Id),
                    ("partition", Number),
                    ("sequence", Number),
                ],
                2,
                Where(
                    WHILE_THE_DESTINATION_EXISTS,
                    "sequence = greatest(destination_cursor.sequence, excluded.sequence)",
                ),
            ),
            Self::PendingRetry => (
                "pending_retry",
                &[("destination", Id), ("sequence", Number), ("record", Bytes)],
                2,
                Where(WHILE_THE_DESTINATION_EXISTS, "record = excluded.record"),
            ),
            Self::DeadLetter => (
                "dead_letter",
                &[
                    ("destination", Id),
                    ("sequence", Number),
                    ("dead_at", Time),
                    ("record", Bytes),
                ],
                2,
                Where(
                    WHILE_THE_DESTINATION_EXISTS,
                    "dead_at = excluded.dead_at, record = excluded.record",
                ),
            ),
            Self::Job => (
                "job",
                &[
                    ("id", Id),
                    ("customer", Text),
                    ("running", Bool),
                    ("record", Bytes),
                ],
                1,
                Replace,
            ),
            Self::JobRequest => ("job_request", &[("job", Id), ("record", Bytes)], 1, Replace),
            Self::JobPart => (
                "job_part",
                &[("job", Id), ("part", Number), ("record", Bytes)],
                2,
                Replace,
            ),
            Self::Schedule => (
                "schedule",
                &[("customer", Text), ("id", Id), ("record", Bytes)],
                2,
                Replace,
            ),
            Self::ScheduleContents => (
                "schedule_contents",
                &[("schedule", Id), ("record", Bytes)],
                1,
                Replace,
            ),
            Self::Sms => (
                "sms",
                &[
                    ("id", Number),
                    ("device_number", Number),
                    ("due_at", Time),
                    ("for_network", Bool),
                    ("wake_up", Bool),
                    ("record", Bytes),
                ],
                1,
                Replace,
            ),
            Self::SmsId => ("sms_id", &[("id", Number), ("sms", Number)], 1, Replace),
            Self::SmsMessage => (
                "sms_message",
                &[("message_id", Text), ("sms", Number)],
                2,
                Replace,
            ),
            Self::SmsParts => (
                "sms_parts",
                &[
                    ("device_number", Number),
                    ("total", Number),
                    ("identifier", Number),
                    ("sms", Number),
                ],
                3,
                Replace,
            ),
            Self::FirmwareImage => (
                "firmware_image",
                &[("customer", Text), ("id", Id), ("record", Bytes)],
                2,
                Replace,
            ),
            Self::Campaign => (
                "campaign",
                &[
                    ("id", Id),
                    ("customer", Text),
                    ("open", Bool),
                    ("record", Bytes),
                ],
                1,
                Replace,
            ),
            Self::CampaignDevice => (
                "campaign_device",
                &[("campaign", Id), ("place", Number), ("record", Bytes)],
                2,
                Replace,
            ),
            Self::CampaignDeviceCount => (
                "campaign_device_count",
                &[
                    ("campaign", Id),
                    ("state", Number),
                    ("slot", Number),
                    ("count", Number),
                ],
                3,
                Where(
                    "true",
                    "count = campaign_device_count.count + excluded.count",
                ),
            ),
            Self::ShardEpoch => (
                "shard_epoch",
                &[("shard", Number), ("epoch", Number)],
                1,
                Replace,
            ),
        };
        Layout {
            name,
            columns,
            keys,
            put,
            compared: self.compared(),
        }
    }

    /// The column that expectations compare, and its place.
    fn compared(self) -> Option<(&'static str, usize)> {
        match self {
            Self::Customer
            | Self::ApiClient
            | Self::Device
            | Self::Schedule
            | Self::CampaignDevice
            | Self::Sms
            | Self::Idempotency => RECORD,
            Self::DeviceName => Some(("uuid_send(t.device)", 2)),
            Self::Action => Some(("int8send(t.status::bigint)", 4)),
            Self::Job => Some(("int8send(t.running::integer::bigint)", 2)),
            Self::SmsId => Some(("int8send(t.sms)", 1)),
            Self::SmsParts => Some(("int8send(t.sms)", 3)),
            Self::ShardEpoch => Some(("int8send(t.epoch)", 1)),
            Self::AccessToken
            | Self::Setting
            | Self::Definition
            | Self::CustomerBootstrapConfig
            | Self::DeviceTag
            | Self::DeviceState
            | Self::DeviceFlags
            | Self::DeviceBootstrapConfig
            | Self::Bootstrap
            | Self::KnownValue
            | Self::UnknownValue
            | Self::DeviceCount
            | Self::ActionCount
            | Self::LogEntry
            | Self::SimOfEntry
            | Self::FormerSim
            | Self::Event
            | Self::RemovedHistory
            | Self::RemovedCustomer
            | Self::RemovedDefinition
            | Self::RemovedDestination
            | Self::RemovedJob
            | Self::Destination
            | Self::DestinationCursor
            | Self::PendingRetry
            | Self::DeadLetter
            | Self::JobRequest
            | Self::JobPart
            | Self::ScheduleContents
            | Self::SmsMessage
            | Self::FirmwareImage
            | Self::Campaign
            | Self::CampaignDeviceCount => None,
        }
    }
}

/// What makes progress is of a destination that is not removed.
const WHILE_THE_DESTINATION_EXISTS: &str =
    "EXISTS (SELECT FROM destination d WHERE d.id = u.destination)";

impl Layout {
    /// It with other columns of which rows are inserted.
    pub(super) fn with(self, columns: &'static [(&'static str, ColumnType)]) -> Self {
        Self { columns, ..self }
    }

    /// The place of the column that expectations compare.
    pub(super) fn compared(&self) -> Option<usize> {
        self.compared
            .map(|(_, place)| place.min(self.columns.len() - 1))
    }

    /// The statement that puts rows.
    pub(super) fn put(&self) -> String {
        let (condition, set) = match &self.put {
            Put::Statement(statement) => {
                return statement.replace("{rows}", &rows_of(self.columns));
            }
            Put::Where(condition, set) => (*condition, (*set).to_owned()),
            Put::Replace => ("true", self.replace()),
        };
        let keys = names(&self.columns[..self.keys], "");
        let conflict = match set.is_empty() {
            true => format!("ON CONFLICT ({keys}) DO NOTHING"),
            false => format!("ON CONFLICT ({keys}) DO UPDATE SET {set}"),
        };
        format!("{} WHERE {condition} {conflict}", self.insert())
    }

    /// The statement that inserts rows, and fails if one of their keys exists.
    pub(super) fn insert(&self) -> String {
        let (name, rows) = (self.name, rows_of(self.columns));
        let (columns, values) = (names(self.columns, ""), names(self.columns, "u."));
        format!("INSERT INTO {name} ({columns}) SELECT {values} FROM {rows}")
    }

    /// The statement that removes the rows of keys.
    pub(super) fn remove(&self) -> String {
        let keys = &self.columns[..self.keys];
        let (name, rows, same) = (self.name, rows_of(keys), same(keys));
        format!("DELETE FROM {name} t USING {rows} WHERE {same}")
    }

    /// The statement that locks the rows of keys and reads what is compared: the place of each key,
    /// from 1, and the bytes.
    pub(super) fn compare(&self) -> Option<String> {
        let (compared, _) = self.compared?;
        let keys = &self.columns[..self.keys];
        let (name, same) = (self.name, same(keys));
        let (arrays, columns) = (arrays(keys), names(keys, ""));
        Some(format!(
            "SELECT u.ordinal, {compared} FROM unnest({arrays}) WITH ORDINALITY \
             AS u({columns}, ordinal) JOIN {name} t ON {same} FOR UPDATE OF t"
        ))
    }

    fn replace(&self) -> String {
        let columns = self.columns[self.keys..].iter();
        let set: Vec<_> = columns
            .map(|(column, _)| format!("{column} = excluded.{column}"))
            .collect();
        set.join(", ")
    }
}

/// The rows of the parameters.
fn rows_of(columns: &[(&str, ColumnType)]) -> String {
    format!("unnest({}) AS u({})", arrays(columns), names(columns, ""))
}

/// The parameters: an array for each column.
fn arrays(columns: &[(&str, ColumnType)]) -> String {
    let mut arrays = String::new();
    for (number, (_, column)) in (1..).zip(columns) {
        let comma = if number == 1 { "" } else { ", " };
        let _ = write!(arrays, "{comma}${number}::{}", column.array_name());
    }
    arrays
}

fn names(columns: &[(&str, ColumnType)], before: &str) -> String {
    let names: Vec<_> = columns
        .iter()
        .map(|(name, _)| format!("{before}{name}"))
        .collect();
    names.join(", ")
}

fn same(keys: &[(&str, ColumnType)]) -> String {
    let same: Vec<_> = keys
        .iter()
        .map(|(name, _)| format!("t.{name} = u.{name}"))
        .collect();
    same.join(" AND ")
}
