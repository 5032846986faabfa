//! Which devices does a customer have?
//!
//! Devices are listed by their ids: by flags, which every device has, and by each of their tags. A
//! list over several combinations of flags merges the beginnings of as many ranges, so its cost
//! grows with what is skipped and shown and not with what exists. Of the ranges that include every
//! device that passes a filter, the smallest is read; what it does not tell is looked up for each
//! of its devices, for at most [`DEVICES_EXAMINED_MAX`] of them: tags and flags in their indexes,
//! and only the rest in the record. Where the range tells everything, the total is a sum of counts.
//!
//! Devices are searched by name prefix: by id among the customer's own, by other names among all
//! customers' devices, because those names are unique service-wide. If more names have the prefix
//! than the customer has devices in the range, those are read instead.

mod search;

use std::collections::{HashMap, HashSet};

use engine::ids::{DeviceId, DeviceKey};
use engine::limits::{DEVICES_EXAMINED_MAX, NAMES_SEARCHED_MAX, RECORDS_EXAMINED_MAX};
use engine::query::devices::{
    DeviceFilter, DevicePage, DevicePageRequest, DeviceTotal, FIRMWARE_VERSION, ListedDevice,
    SearchTooBroad,
};
use engine::tags::Tag;
use tokio_postgres::Row;

use super::{count_in, cut, id_in, record, shown};
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::Unreadable;
use crate::record::device::{ObjectListCache, read_device, read_one_of_many};
use crate::record::device_flags::DeviceFlags;
use crate::record::profile::read_profile;
use crate::record::value::read_known;

/// The devices whose records are read together: a record may have kibibytes.
const RECORDS_AT_ONCE: usize = 1_000;

/// Up to so many devices are counted to find the smallest range: more than a search reads.
const COMPARED_MAX: i64 = NAMES_SEARCHED_MAX as i64 + 1;

/// A device in a list.
#[derive(Clone, Debug)]
struct Candidate {
    id: String,
    device: DeviceKey,
}

/// A page of the devices of a customer that pass a filter.
pub(super) async fn devices_of(
    reader: &Reader,
    filter: &DeviceFilter,
    wanted: &DevicePageRequest,
) -> Result<Result<DevicePage, SearchTooBroad>, PostgresFault> {
    let candidates = Candidates::of(reader, filter).await?;
    if let Some(prefix) = &filter.name_prefix {
        return search::devices_named(reader, prefix, &candidates, wanted).await;
    }
    let rest = candidates.rest();
    let page = match rest.is_nothing() && wanted.after.is_none() {
        true => counted_page(reader, &candidates, wanted).await?,
        false => examined_page(reader, &candidates, &rest, wanted).await?,
    };
    Ok(Ok(page))
}

/// A page of a list whose length is known.
async fn counted_page(
    reader: &Reader,
    candidates: &Candidates<'_>,
    wanted: &DevicePageRequest,
) -> Result<DevicePage, PostgresFault> {
    let (skip, size) = cut(wanted.page);
    let count = candidates.total(reader).await?;
    let mut found = Vec::new();
    if wanted.page.skip() < count {
        let one_more = (skip, size.saturating_add(1));
        found = candidates.devices(reader, IdRange::all(), one_more).await?;
    }
    let total = DeviceTotal::Exactly(count);
    page_of(reader, found, wanted.page.size, None, total).await
}

/// A page of a list whose devices are examined one by one.
async fn examined_page(
    reader: &Reader,
    candidates: &Candidates<'_>,
    rest: &Examination<'_>,
    wanted: &DevicePageRequest,
) -> Result<DevicePage, PostgresFault> {
    let max = usize::try_from(DEVICES_EXAMINED_MAX).unwrap_or(usize::MAX);
    let one_more = (0, i64::from(DEVICES_EXAMINED_MAX) + 1);
    let range = match &wanted.after {
        Some(after) => IdRange::behind(after),
        None => IdRange::all(),
    };
    let mut found = candidates.devices(reader, range, one_more).await?;
    let passing = rest.passing_by_index(reader, &found).await?;
    let mut end = found.len().min(max);
    if rest.reads_records() {
        let most = usize::try_from(RECORDS_EXAMINED_MAX).unwrap_or(usize::MAX);
        let with_record = (0..end).filter(|place| passing.contains(&found[*place].device));
        // The list ends behind the last device whose record may be read.
        end = with_record
            .take(most)
            .nth(most - 1)
            .map_or(end, |it| it + 1);
    }
    let is_whole = end == found.len();
    found.truncate(end);
    let last = found.last().map(|last| last.id.clone());
    found.retain(|it| passing.contains(&it.device));
    let mut found = rest.passing_by_record(reader, found).await?;
    let passed = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let skip = usize::try_from(wanted.page.skip()).unwrap_or(usize::MAX);
    found.drain(..skip.min(found.len()));
    let (total, next) = match is_whole {
        true => (DeviceTotal::Exactly(passed), None),
        false => (DeviceTotal::AtLeast(passed), last),
    };
    page_of(reader, found, wanted.page.size, next, total).await
}

/// The first devices of what follows, as a page. The list continues behind the last of them if more
/// follow, else where it says.
async fn page_of(
    reader: &Reader,
    mut found: Vec<Candidate>,
    size: u32,
    next: Option<String>,
    total: DeviceTotal,
) -> Result<DevicePage, PostgresFault> {
    const SQL: &str = "SELECT device.record, device_state.record \
        FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (key, place) \
        JOIN device ON device.key = wanted.key \
        LEFT JOIN device_state ON device_state.device = wanted.key ORDER BY place";
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let next = match found.len() > size {
        true => size.checked_sub(1).map(|last| found[last].id.clone()),
        false => next,
    };
    found.truncate(size);
    let keys: Vec<SqlId> = found
        .iter()
        .map(|it| SqlId(*it.device.as_bytes()))
        .collect();
    let rows = reader.rows(SQL, &[&keys]).await?;
    let items = shown(&rows, |row| {
        let profile = record(row, 0, read_profile)?;
        let kept: Option<&[u8]> = row.try_get(1)?;
        let record = kept.map(read_device).transpose()?.unwrap_or_default();
        Ok(ListedDevice { profile, record })
    })?;
    let next = next.map(|id| DeviceId::parse(&id)).transpose();
    Ok(DevicePage {
        items,
        total,
        next: next.map_err(|_| Unreadable::Damaged("a device id in a list"))?,
    })
}

/// The smallest range that includes all devices that pass a filter.
struct Candidates<'f> {
    filter: &'f DeviceFilter,
    /// The tag that all of them have; none if they are listed by flags.
    tag: Option<&'f Tag>,
    /// How many there are, up to [`COMPARED_MAX`].
    count: u64,
}

impl<'f> Candidates<'f> {
    async fn of(reader: &Reader, filter: &'f DeviceFilter) -> Result<Self, PostgresFault> {
        let mut smallest = Self {
            filter,
            tag: None,
            count: count_of(reader, filter, None, COMPARED_MAX).await?,
        };
        for tag in &filter.tags {
            let tag = Some(tag);
            let count = count_of(reader, filter, tag, COMPARED_MAX).await?;
            if smallest.count >= count {
                smallest = Self { filter, tag, count };
            }
        }
        Ok(smallest)
    }

    /// How many devices the range has.
    async fn total(&self, reader: &Reader) -> Result<u64, PostgresFault> {
        const ALL: &str = "SELECT sum(count)::bigint FROM device_count \
            WHERE customer = $1 HAVING count(*) > 0";
        if *self.filter == DeviceFilter::all_of(self.filter.customer.clone()) {
            let customer = self.filter.customer.as_str();
            return count_in(reader.row(ALL, &[&customer]).await?);
        }
        match self.count < COMPARED_MAX.cast_unsigned() {
            true => Ok(self.count),
            false => count_of(reader, self.filter, self.tag, i64::MAX).await,
        }
    }

    /// What has to be examined of each.
    fn rest(&self) -> Examination<'f> {
        let mut rest = Examination::of(self.filter);
        match self.tag {
            Some(known) => rest.tags.retain(|tag| *tag != known),
            None => rest.flags = None,
        }
        rest
    }

    /// Some of the devices with an id in a range, in the order of their ids.
    async fn devices(
        &self,
        reader: &Reader,
        IdRange { first, end }: IdRange,
        (skip, size): (i64, i64),
    ) -> Result<Vec<Candidate>, PostgresFault> {
        const BY_FLAGS: &str = "SELECT range.device_id, range.key \
            FROM unnest($2::smallint[]) AS wanted (flags) CROSS JOIN LATERAL ( \
                SELECT device_id, key FROM device \
                WHERE customer = $1 AND device.flags = wanted.flags \
                AND device_id >= $3 AND device_id < $4 ORDER BY device_id LIMIT $5) AS range \
            ORDER BY range.device_id OFFSET $6 LIMIT $7";
        const BY_TAG: &str = "SELECT device_id, device FROM device_tag \
            WHERE customer = $1 AND tag_key = $2 AND tag_value = $3 \
            AND device_id >= $4 AND device_id < $5 ORDER BY device_id OFFSET $6 LIMIT $7";
        let customer = self.filter.customer.as_str();
        let rows = match self.tag {
            Some(Tag { key, value }) => {
                let (key, value) = (key.as_str(), value.as_str());
                reader
                    .rows(
                        BY_TAG,
                        &[&customer, &key, &value, &first, &end, &skip, &size],
                    )
                    .await?
            }
            None => {
                let (flags, until) = (wanted_flags(self.filter), skip.saturating_add(size));
                reader
                    .rows(
                        BY_FLAGS,
                        &[&customer, &flags, &first, &end, &until, &skip, &size],
                    )
                    .await?
            }
        };
        rows.iter().map(candidate_in).collect()
    }
}

/// How many devices of a customer have a tag, or else flags that may pass, up to a bound.
async fn count_of(
    reader: &Reader,
    filter: &DeviceFilter,
    tag: Option<&Tag>,
    max: i64,
) -> Result<u64, PostgresFault> {
    const BY_FLAGS: &str = "SELECT count(*) FROM (SELECT FROM device \
        WHERE customer = $1 AND flags = ANY($2) LIMIT $3) AS counted";
    const BY_TAG: &str = "SELECT count(*) FROM (SELECT FROM device_tag \
        WHERE customer = $1 AND tag_key = $2 AND tag_value = $3 LIMIT $4) AS counted";
    let customer = filter.customer.as_str();
    let row = match tag {
        Some(Tag { key, value }) => {
            let (key, value) = (key.as_str(), value.as_str());
            reader.row(BY_TAG, &[&customer, &key, &value, &max]).await?
        }
        None => {
            let flags = wanted_flags(filter);
            reader.row(BY_FLAGS, &[&customer, &flags, &max]).await?
        }
    };
    count_in(row)
}

/// The ids from one text on and before another.
struct IdRange {
    first: String,
    end: String,
}

impl IdRange {
    fn all() -> Self {
        Self::with_prefix("")
    }

    fn behind(id: &DeviceId) -> Self {
        Self {
            // No id has this character.
            first: format!("{id}\u{1}"),
            ..Self::all()
        }
    }

    fn with_prefix(prefix: &str) -> Self {
        Self {
            first: prefix.to_owned(),
            // No id has this character, and it is behind all others.
            end: format!("{prefix}\u{10ffff}"),
        }
    }
}

/// The combinations of flags of the devices that may pass a filter.
fn wanted_flags(filter: &DeviceFilter) -> Vec<i16> {
    let wanted = DeviceFlags::every().filter(|flags| flags.pass(filter));
    wanted.map(|flags| i16::from(flags.code())).collect()
}

/// Reads a device from the columns of its id and its key.
fn candidate_in(row: &Row) -> Result<Candidate, PostgresFault> {
    Ok(Candidate {
        id: row.try_get(0)?,
        device: DeviceKey::from_bytes(id_in(row, 1)?),
    })
}

/// What has to be looked up of a device to know whether it passes a filter.
struct Examination<'f> {
    filter: &'f DeviceFilter,
    /// The tags it must have.
    tags: Vec<&'f Tag>,
    /// The flags of which it must have one; none if any will do.
    flags: Option<Vec<i16>>,
    /// Whether its record tells more.
    record: bool,
}

impl<'f> Examination<'f> {
    /// Everything that a filter is about, apart from the customer and a prefix.
    fn of(filter: &'f DeviceFilter) -> Self {
        let is_by_flags = filter.registered.is_some() || filter.protocols_seen.is_some();
        Self {
            filter,
            tags: filter.tags.iter().collect(),
            flags: is_by_flags.then(|| wanted_flags(filter)),
            record: filter.version.is_some()
                || filter.object.is_some()
                || filter.last_seen_before.is_some()
                || filter.last_seen_after.is_some()
                || filter.online.is_some(),
        }
    }

    fn is_nothing(&self) -> bool {
        self.tags.is_empty() && self.flags.is_none() && !self.reads_records()
    }

    fn reads_records(&self) -> bool {
        self.record || self.filter.firmware.is_some()
    }

    /// Those of some devices that pass everything.
    async fn passing(
        &self,
        reader: &Reader,
        mut devices: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, PostgresFault> {
        let passing = self.passing_by_index(reader, &devices).await?;
        devices.retain(|it| passing.contains(&it.device));
        self.passing_by_record(reader, devices).await
    }

    /// Those of some devices that have the tags and the flags.
    async fn passing_by_index(
        &self,
        reader: &Reader,
        devices: &[Candidate],
    ) -> Result<HashSet<DeviceKey>, PostgresFault> {
        const TAGGED: &str = "SELECT device FROM device_tag WHERE customer = $1 \
            AND tag_key = $2 AND tag_value = $3 AND device_id = ANY($4)";
        const FLAGGED: &str = "SELECT key FROM device WHERE key = ANY($1) AND flags = ANY($2)";
        let customer = self.filter.customer.as_str();
        let ids: Vec<&str> = devices.iter().map(|it| it.id.as_str()).collect();
        let mut passing: HashSet<DeviceKey> = devices.iter().map(|it| it.device).collect();
        let only = |passing: &mut HashSet<DeviceKey>, rows: &[Row]| {
            let keys = rows
                .iter()
                .map(|row| id_in(row, 0).map(DeviceKey::from_bytes));
            let keys = keys.collect::<Result<HashSet<_>, _>>()?;
            passing.retain(|device| keys.contains(device));
            Ok::<(), PostgresFault>(())
        };
        for tag in &self.tags {
            let (key, value) = (tag.key.as_str(), tag.value.as_str());
            let rows = reader
                .rows(TAGGED, &[&customer, &key, &value, &ids])
                .await?;
            only(&mut passing, &rows)?;
        }
        if let Some(flags) = &self.flags {
            let keys: Vec<SqlId> = passing.iter().map(|it| SqlId(*it.as_bytes())).collect();
            only(&mut passing, &reader.rows(FLAGGED, &[&keys, flags]).await?)?;
        }
        Ok(passing)
    }

    /// Those of some devices whose records pass.
    async fn passing_by_record(
        &self,
        reader: &Reader,
        mut devices: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, PostgresFault> {
        const RECORDS: &str = "SELECT device, record FROM device_state WHERE device = ANY($1)";
        const VERSIONS: &str =
            "SELECT device, record FROM known_value WHERE device = ANY($1) AND path = $2";
        if self.record {
            let mut others = ObjectListCache::default();
            let mut record_by_device = HashMap::new();
            for keys in chunks_of(&devices) {
                for row in reader.rows(RECORDS, &[&keys]).await? {
                    let read = |value: &[u8]| read_one_of_many(value, &mut others);
                    let wanted = self.filter.wants_record(&record(&row, 1, read)?);
                    record_by_device.insert(DeviceKey::from_bytes(id_in(&row, 0)?), wanted);
                }
            }
            let without = self.filter.wants_record(&Default::default());
            devices.retain(|it| *record_by_device.get(&it.device).unwrap_or(&without));
        }
        if self.filter.firmware.is_some() {
            let path = FIRMWARE_VERSION.to_bytes().to_vec();
            let mut known_by_device = HashMap::new();
            for keys in chunks_of(&devices) {
                for row in reader.rows(VERSIONS, &[&keys, &path]).await? {
                    let known = record(&row, 1, |value| read_known(FIRMWARE_VERSION, value))?;
                    known_by_device.insert(DeviceKey::from_bytes(id_in(&row, 0)?), known.value);
                }
            }
            devices.retain(|it| {
                let version = known_by_device.get(&it.device);
                self.filter.wants_firmware(version)
            });
        }
        Ok(devices)
    }
}

/// The keys of devices, some at a time.
fn chunks_of(devices: &[Candidate]) -> impl Iterator<Item = Vec<SqlId>> {
    let chunks = devices.chunks(RECORDS_AT_ONCE);
    chunks.map(|some| some.iter().map(|it| SqlId(*it.device.as_bytes())).collect())
}
