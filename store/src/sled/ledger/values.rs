//! Which values are last known of each device?
//!
//! Every reported value is in an event. A row for each would be written with every event; instead
//! the events with values are kept in memory, by page of neighbouring devices, until the rolling
//! checkpoint writes the page (heads.rs). What was reported since then is added where values are
//! read, and is read again from the blocks when the store is opened.

use std::collections::BTreeMap;

use engine::delivery::backlog::Sequence;
use engine::ids::DeviceKey;
use engine::query::KnownValue;
use sled::Tree;

use super::{SharedHeads, page_of, read};
use crate::record::event::read_reported;
use crate::record::known::{ValuePage, read_values, read_values_of, write_values};
use crate::record::value::is_short;
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::kv::{self, Value};
use crate::sled::overlay::Overlay;

/// Device, number and size of a report.
const HEAD_BYTES: usize = 16 + 8 + 4;

/// The events with values of the devices of a page, those of a device in order.
#[derive(Clone, Default)]
pub(super) struct Reports(Vec<u8>);

/// An event with values.
#[derive(Clone, Copy)]
pub(super) struct Report<'a> {
    /// Of which device.
    pub(super) device: DeviceKey,
    /// Its number.
    pub(super) number: Sequence,
    /// The event, as [`crate::record::event::write_event`] wrote it.
    pub(super) event: &'a [u8],
}

impl Reports {
    /// Adds a report.
    pub(super) fn push(&mut self, report: &Report<'_>) {
        let Ok(size) = u32::try_from(report.event.len()) else {
            return;
        };
        self.0.extend_from_slice(report.device.as_bytes());
        self.0.extend_from_slice(&report.number.0.to_be_bytes());
        self.0.extend_from_slice(&size.to_be_bytes());
        self.0.extend_from_slice(report.event);
    }

    /// All of them.
    fn iter(&self) -> impl Iterator<Item = Report<'_>> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (device, behind) = rest.split_first_chunk::<16>()?;
            let (number, behind) = behind.split_first_chunk::<8>()?;
            let (size, behind) = behind.split_first_chunk::<4>()?;
            let (event, behind) = behind.split_at_checked(u32::from_be_bytes(*size) as usize)?;
            rest = behind;
            Some(Report {
                device: DeviceKey::from_bytes(*device),
                number: Sequence(u64::from_be_bytes(*number)),
                event,
            })
        })
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one has a number up to this one.
    pub(super) fn reach_back_to(&self, number: Sequence) -> bool {
        self.iter().any(|report| report.number <= number)
    }

    /// Drops those of a device up to a number.
    pub(super) fn forget(&mut self, device: DeviceKey, last: Sequence) {
        let is_of = |report: &Report<'_>| report.device == device && report.number <= last;
        if self.iter().any(|report| is_of(&report)) {
            let mut kept = Self::default();
            let reports = self.iter().filter(|report| !is_of(report));
            reports.for_each(|report| kept.push(&report));
            *self = kept;
        }
    }

    /// Those of a device.
    pub(super) fn of(&self, device: DeviceKey) -> Self {
        let mut reports = Self::default();
        let of_device = self.iter().filter(|report| report.device == device);
        of_device.for_each(|report| reports.push(&report));
        reports
    }
}

/// The bytes that a report takes in memory.
pub(super) fn report_bytes(event: &[u8]) -> usize {
    HEAD_BYTES + event.len()
}

/// The last known values of a device, by path.
pub(in crate::sled) fn values_of(
    tree: &Tree,
    heads: &SharedHeads,
    device: DeviceKey,
) -> Result<Vec<KnownValue>, Fault> {
    // Before the page: a report that is dropped is in the page that is read.
    let (reports, max) = {
        let heads = read(heads);
        (heads.reports_of(device), heads.values_max())
    };
    let key = key::event::value_page(page_of(device));
    let page = kv::load(tree, &key)?.map(|page| read_values_of(&page, device));
    let (complete_to, mut values) = page.transpose()?.unwrap_or_default();
    let since = reports.iter().filter(|report| report.number > complete_to);
    add_reports(&mut values, since, max);
    Ok(values)
}

/// Adds reports to the page of their devices, which is complete to a number from then on. Returns
/// its size.
pub(super) fn write_page(
    place: u16,
    (reports, complete_to): (&Reports, Sequence),
    max: u32,
    rows: &mut Overlay<'_>,
) -> Result<usize, Fault> {
    change_page(place, rows, |page| {
        let mut by_device: BTreeMap<DeviceKey, Vec<Report<'_>>> = BTreeMap::new();
        for report in reports.iter().filter(|it| it.number > page.complete_to) {
            by_device.entry(report.device).or_default().push(report);
        }
        for (device, reports) in by_device {
            change_values(page, device, |values| add_reports(values, reports, max));
        }
        page.complete_to = complete_to;
        true
    })
}

/// Removes the values of a device.
pub(in crate::sled) fn remove_values(
    device: DeviceKey,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    let remove = |page: &mut ValuePage| page.devices.remove(&device).is_some();
    change_page(page_of(device), rows, remove).map(drop)
}

/// Puts values that are known of devices.
pub(in crate::sled) fn put_values(
    known: Vec<(DeviceKey, KnownValue)>,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    for of_page in known.chunk_by(|one, other| page_of(one.0) == page_of(other.0)) {
        let Some((first, _)) = of_page.first() else {
            continue;
        };
        change_page(page_of(*first), rows, |page| {
            for of_device in of_page.chunk_by(|one, other| one.0 == other.0) {
                let Some((device, _)) = of_device.first() else {
                    continue;
                };
                change_values(page, *device, |values| {
                    for (_, known) in of_device {
                        put(values, known.clone(), u32::MAX);
                    }
                });
            }
            true
        })?;
    }
    Ok(())
}

/// Changes a page, and returns its size if it is written: the change returns whether it has to be.
/// One that cannot be decoded begins anew, so that it does not keep others from being stored.
fn change_page(
    place: u16,
    rows: &mut Overlay<'_>,
    change: impl FnOnce(&mut ValuePage) -> bool,
) -> Result<usize, Fault> {
    let key = key::event::value_page(place);
    let page = kv::load(rows, &key).and_then(|row| {
        let page = row.map(|row| ValuePage::read(&row));
        Ok(page.transpose()?)
    });
    let mut page = match page {
        Ok(page) => page.unwrap_or_default(),
        Err(fault) if fault.is_fatal() => return Err(fault),
        Err(fault) => {
            tracing::error!(%fault, place, "a page of last values cannot be read");
            ValuePage::default()
        }
    };
    if !change(&mut page) {
        return Ok(0);
    }
    if page.devices.is_empty() {
        rows.erase(key)?;
        return Ok(0);
    }
    let (written, size) = page.write();
    let value = Value::cut(&key, &written);
    rows.replace(key.into(), value)?;
    Ok(size)
}

/// Changes the values of a device of a page.
fn change_values(
    page: &mut ValuePage,
    device: DeviceKey,
    change: impl FnOnce(&mut Vec<KnownValue>),
) {
    let known = page.devices.get(&device);
    let values = known.map(|values| read_values(values)).transpose();
    let mut values = values.unwrap_or_else(|damage| {
        tracing::error!(%damage, "the last values of a device cannot be read");
        None
    });
    let values = values.get_or_insert_default();
    change(values);
    match values.is_empty() {
        true => drop(page.devices.remove(&device)),
        false => drop(page.devices.insert(device, write_values(values))),
    }
}

/// Adds what a device reported to its values, of which it has at most `max`.
fn add_reports<'a>(
    values: &mut Vec<KnownValue>,
    reports: impl IntoIterator<Item = Report<'a>>,
    max: u32,
) {
    for report in reports {
        match read_reported(report.event) {
            Ok(Some((received_at, telemetry))) => {
                let at = telemetry.known_at(received_at);
                let named = telemetry.values.into_iter();
                named.for_each(|(path, value)| put(values, KnownValue { path, value, at }, max));
            }
            Ok(None) => {}
            Err(damage) => tracing::error!(%damage, "an event with values cannot be read"),
        }
    }
}

/// Puts a value unless a newer one is known: one that arrives late was measured earlier. A new path
/// needs room, and one whose value is too long is no longer known.
fn put(values: &mut Vec<KnownValue>, reported: KnownValue, max: u32) {
    match values.binary_search_by_key(&reported.path, |known| known.path) {
        Ok(place) => match values.get_mut(place) {
            Some(known) if known.at > reported.at => {}
            Some(known) if is_short(&reported.value) => *known = reported,
            _ => drop(values.remove(place)),
        },
        Err(place) if is_short(&reported.value) && (values.len() as u64) < u64::from(max) => {
            values.insert(place, reported);
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, RwLock};

    use engine::event::{Cause, Event, EventContent, Telemetry};
    use engine::{Path, Value as Measured};

    use super::*;
    use crate::conformance::samples::{acme, device, event};
    use crate::record::event::write_event;
    use crate::sled::ledger::Heads;

    /// A Send of one value, as it is stored.
    fn sent(number: u64, value: i64) -> Vec<u8> {
        let telemetry = Telemetry {
            source: engine::action::Protocol::Lwm2m,
            cause: Cause::Send,
            measured_at: None,
            values: [(Path::resource(3303, 0, 5700), Measured::Integer(value))].into(),
        };
        write_event(&Event {
            content: EventContent::Telemetry(telemetry),
            ..event(&device(&acme(), 1), 7, number)
        })
    }

    fn reports(of: &[(DeviceKey, u64)]) -> Reports {
        let mut reports = Reports::default();
        for (device, number) in of {
            reports.push(&Report {
                device: *device,
                number: Sequence(*number),
                event: &sent(*number, *number as i64),
            });
        }
        reports
    }

    #[test]
    fn reports_of_a_device_are_dropped_up_to_a_number() {
        let [one, other] = [1, 2].map(|byte| DeviceKey::from_bytes([byte; 16]));
        let mut all = reports(&[(one, 3), (other, 4), (one, 5), (other, 6)]);
        let numbers = |reports: &Reports| reports.iter().map(|it| it.number.0).collect::<Vec<_>>();
        assert_eq!(numbers(&all.of(one)), [3, 5]);
        assert!(all.reach_back_to(Sequence(3)) && !all.reach_back_to(Sequence(2)));
        all.forget(one, Sequence(4));
        assert_eq!(numbers(&all), [4, 5, 6]);
        all.forget(DeviceKey::from_bytes([3; 16]), Sequence(9));
        assert_eq!(numbers(&all), [4, 5, 6]);
    }

    #[test]
    fn a_report_is_added_once_to_a_page_and_a_damaged_page_begins_anew() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let heads = Heads::load(&db, Some(9)).unwrap();
        let heads: SharedHeads = Arc::new(RwLock::new(heads));
        let meter = DeviceKey::from_bytes([1; 16]);
        let write = |numbers: &[u64], complete_to| {
            let numbers: Vec<_> = numbers.iter().map(|number| (meter, *number)).collect();
            let mut rows = Overlay::new(&db);
            let since = (&reports(&numbers), Sequence(complete_to));
            write_page(page_of(meter), since, 9, &mut rows).unwrap();
            db.apply_batch(rows.into_batch()).unwrap();
        };
        let known = || {
            let values = values_of(&db, &heads, meter).unwrap();
            values.into_iter().map(|it| it.value).collect::<Vec<_>>()
        };
        write(&[3, 5], 5);
        assert_eq!(known(), [Measured::Integer(5)]);
        // The value of an event that is in the page, as old as that of a later one.
        write(&[4], 5);
        assert_eq!(known(), [Measured::Integer(5)]);
        db.insert(key::event::value_page(page_of(meter)), &[9, 9])
            .unwrap();
        assert!(values_of(&db, &heads, meter).is_err());
        write(&[6], 6);
        assert_eq!(known(), [Measured::Integer(6)]);
    }
}
