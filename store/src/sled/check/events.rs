//! Are the stored events complete, and do they and the newest events of devices name only events
//! that are there? Are last known values those of devices that are there?
//!
//! Blocks are removed from the oldest on, so what is missing between two blocks of a partition was
//! lost. Nothing follows the last one, so that its loss shows only in what names its events.

use std::collections::{BTreeMap, HashMap};

use engine::delivery::backlog::Sequence;
use engine::ids::DeviceKey;
use engine::moment::Timestamp;
use sled::{IVec, Tree};

use super::findings::{Findings, Problem, noun, readable};
use crate::record::Unreadable;
use crate::record::block::{Block, BlockHead};
use crate::record::heads::{read_checkpoint, read_page};
use crate::record::known::ValuePage;
use crate::record::number::read_sequence;
use crate::record::profile::read_profile;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Table};
use crate::sled::kv;
use crate::sled::ledger::{PartitionKey, page_of};

/// Events, among the findings.
const EVENTS: &str = "events";

/// The newest events of devices, among the findings.
const HEADS: &str = "newest events of devices";

/// The last known values of a device, among the findings.
const VALUES: &str = "last values of devices";

/// What is known of the blocks that were read.
#[derive(Default)]
struct Stored {
    /// The newest event of each device.
    newest: HashMap<DeviceKey, Sequence>,
    /// The number of the oldest event of each partition.
    oldest: BTreeMap<PartitionKey, Sequence>,
    /// The greatest number.
    last: Sequence,
}

/// The partition that is being read.
struct Reading {
    place: PartitionKey,
    first: Sequence,
    /// The block before; nothing behind one that cannot be decoded.
    before: Option<BlockHead>,
    /// Up to which number events may be missing that were reported so.
    lost_to: Sequence,
}

/// Checks every block, and the newest event of each device.
pub(super) fn check(tree: &Tree, findings: &mut Findings) -> Result<(), Fault> {
    let mut stored = Stored::default();
    let mut reading: Option<Reading> = None;
    for key in tree.scan_prefix(key::event::blocks()).keys() {
        let key = key?;
        let Some((customer, partition, first)) = key::event::place_of_block(&key) else {
            let why = Unreadable::Damaged("the key of a block");
            findings.unreadable(Table::EventBlock, &key, &why);
            continue;
        };
        let place = (customer, partition);
        let mut current = match reading.take() {
            Some(current) if current.place == place => current,
            _ => Reading::begun(place, first, &mut stored),
        };
        if let Err(fault) = read_block(tree, &key, first, &mut current, &mut stored, findings) {
            let Fault::Unreadable(why) = fault else {
                return Err(fault);
            };
            findings.unreadable(Table::EventBlock, &key, &why);
            current.before = None;
            current.lost_to = Sequence(u64::MAX);
        }
        reading = Some(current);
    }
    let newest = check_newest_number(tree, &stored, findings)?;
    check_values(tree, newest, findings)?;
    check_heads(tree, stored, findings)
}

impl Reading {
    fn begun(place: PartitionKey, first: Sequence, stored: &mut Stored) -> Self {
        stored.oldest.insert(place.clone(), first);
        Self {
            place,
            first,
            before: None,
            lost_to: Sequence::default(),
        }
    }
}

fn read_block(
    tree: &Tree,
    key: &IVec,
    first: Sequence,
    reading: &mut Reading,
    stored: &mut Stored,
    findings: &mut Findings,
) -> Result<(), Fault> {
    let Some(value) = kv::load(tree, key)? else {
        return Ok(());
    };
    let block = Block::read(&value)?;
    let head = block.head;
    if let Some(before) = reading.before {
        let ordinal = before.ordinal + before.count;
        if head.ordinal > ordinal {
            let lost = head.ordinal - ordinal;
            let place = format!("before the block {}", readable(key));
            findings.add(EVENTS, Problem::Missing, lost, &place);
            reading.lost_to = first;
        } else if head.ordinal < ordinal || first <= before.last {
            findings.add(
                noun(Table::EventBlock),
                Problem::Different,
                1,
                &readable(key),
            );
        }
    } else if reading.lost_to > first {
        reading.lost_to = first;
    }
    let (mut count, mut last) = (0, Sequence::default());
    let mut newest_at = Timestamp::from_ms(i64::MIN);
    for entry in block.entries() {
        let entry = entry?;
        let queued = entry.queued;
        if count == 0 && queued.sequence != first {
            return Err(Unreadable::Damaged("a block under another number").into());
        }
        newest_at = newest_at.max(entry.event(&reading.place.0)?.at);
        let before = stored.newest.insert(queued.device, queued.sequence);
        // The event before it may have gone with its age.
        let is_known = match before {
            Some(before) => entry.previous == before,
            None => entry.previous < reading.first,
        };
        if !is_known && entry.previous >= reading.lost_to {
            let first = format!("{} ({})", readable(key), queued.sequence.0);
            findings.add(EVENTS, Problem::Dangling, 1, &first);
        }
        count += 1;
        last = queued.sequence;
    }
    if (count, last, newest_at) != (head.count, head.last, head.newest_at) {
        findings.add(
            noun(Table::EventBlock),
            Problem::Different,
            1,
            &readable(key),
        );
    }
    stored.last = stored.last.max(last);
    reading.before = Some(head);
    Ok(())
}

/// Checks that no number is given twice, and returns the newest one.
fn check_newest_number(
    tree: &Tree,
    stored: &Stored,
    findings: &mut Findings,
) -> Result<Sequence, Fault> {
    let row = tree.get(key::event::newest_number())?;
    let Ok(newest) = row.map_or(Ok(Sequence::default()), |row| read_sequence(&row)) else {
        return Ok(Sequence(u64::MAX));
    };
    if newest < stored.last {
        let first = format!("{} instead of {}", newest.0, stored.last.0);
        findings.add(noun(Table::NewestNumber), Problem::Different, 1, &first);
    }
    Ok(newest)
}

/// Checks that the last known values are in the pages of their devices, which exist, and follow
/// from no event that is still to come.
fn check_values(tree: &Tree, newest: Sequence, findings: &mut Findings) -> Result<(), Fault> {
    for key in tree.scan_prefix(key::event::value_pages()).keys() {
        let key = key?;
        let Ok(Some(value)) = kv::load(tree, &key) else {
            continue;
        };
        // One that cannot be decoded is a finding of its own.
        let Ok(page) = ValuePage::read(&value) else {
            continue;
        };
        let is_of_page = |device| *key == *key::event::value_page(page_of(device));
        let is_right = page.devices.keys().all(|device| is_of_page(*device));
        if !is_right || page.complete_to > newest {
            let page = readable(&key);
            findings.add(noun(Table::ValuePage), Problem::Different, 1, &page);
        }
        for device in page.devices.keys() {
            let device = key::device::device(*device);
            if !tree.contains_key(&device)? {
                let of = readable(&device);
                findings.add(VALUES, Problem::Dangling, 1, &of);
            }
        }
    }
    Ok(())
}

/// Checks the pages of the newest events: they may be behind, but not beyond what they are complete
/// to.
fn check_heads(tree: &Tree, mut stored: Stored, findings: &mut Findings) -> Result<(), Fault> {
    let row = tree.get(key::event::checkpoint())?;
    let Ok(written) = row.map_or(Ok(Default::default()), |row| read_checkpoint(&row)) else {
        return Ok(());
    };
    let complete_to = written.complete_to();
    for key in tree.scan_prefix(key::event::head_pages()).keys() {
        let key = key?;
        let Ok(Some(value)) = kv::load(tree, &key) else {
            continue;
        };
        let Ok(page) = read_page(&value) else {
            continue;
        };
        if !page.is_sorted_by(|one, other| one.0 < other.0) {
            findings.add(
                noun(Table::HeadPage),
                Problem::Different,
                1,
                &readable(&key),
            );
        }
        for (device, named) in page {
            let of = readable(&key::device::device(device));
            match stored.newest.remove(&device) {
                Some(newest) if named > newest => {
                    findings.add(HEADS, Problem::Dangling, 1, &of);
                }
                Some(newest) if named < newest && newest <= complete_to => {
                    findings.add(HEADS, Problem::Different, 1, &of);
                }
                Some(_) => {}
                None if is_kept(tree, device, named, &stored)? => {
                    findings.add(HEADS, Problem::Dangling, 1, &of);
                }
                None => {}
            }
        }
    }
    for (device, newest) in stored.newest {
        if newest <= complete_to {
            let of = readable(&key::device::device(device));
            findings.add(HEADS, Problem::Missing, 1, &of);
        }
    }
    Ok(())
}

/// Whether an event of a device with this number would be kept: its partition has an older one.
fn is_kept(
    tree: &Tree,
    device: DeviceKey,
    number: Sequence,
    stored: &Stored,
) -> Result<bool, Fault> {
    let Ok(Some(value)) = kv::load(tree, &key::device::device(device)) else {
        return Ok(false);
    };
    let Ok(profile) = read_profile(&value) else {
        return Ok(false);
    };
    let place = (profile.customer, device.partition());
    let oldest = stored.oldest.get(&place);
    Ok(oldest.is_some_and(|oldest| *oldest <= number))
}
