//! Do all rows of an embedded store come back from the rows that PostgreSQL has of them? Without a
//! server: the cells of a page are read as those of rows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use engine::ids::DeviceKey;
use sled::IVec;

use crate::conformance::run_all;
use crate::migration::MovedPage;
use crate::postgres::{PageRows, records_of};
use crate::record::block::Block;
use crate::record::entry::unlink;
use crate::sled::key::{self, Table};
use crate::sled::kv;
use crate::sled::ledger::values_of;
use crate::{Options, SledStore};

use super::{SledTarget, WholeStore};

#[test]
fn the_rows_of_every_law_come_back() {
    let home = tempfile::tempdir().unwrap();
    run_all(home.path(), &|path| {
        Box::new(SledStore::open(Options::at(path)).unwrap())
    });
    let (mut moved, mut whole) = (0, 0);
    for law in fs::read_dir(home.path()).unwrap() {
        let law = law.unwrap().path();
        if law.join("rows").exists() {
            whole += u32::from(there_and_back(&law));
            moved += 1;
        }
    }
    assert!(moved > 90, "{moved} laws have a store");
    assert!(whole > 50, "{whole} of {moved} stores are whole");
}

/// Whether the store of a law is whole: some laws store things without what they belong to.
fn there_and_back(law: &Path) -> bool {
    let (name, back) = (law.display(), law.join("back"));
    let source = WholeStore::open(law).unwrap();
    let mut target = SledTarget::open(&back).unwrap();
    target.begin("the law").unwrap();
    // As from PostgreSQL, whose tables are in another order.
    for (table, rows) in records_of(pages_of(&source)) {
        let page = MovedPage {
            count: rows.len() as u64,
            rows,
            table,
            reached: table.as_bytes().to_vec(),
        };
        target.write(page).unwrap();
    }
    target.end(&source.singles().unwrap()).unwrap();
    let is_whole = source.rows.check().findings.is_empty();
    if is_whole {
        target.check().unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    let totals = source.totals().unwrap();
    let different = totals.differences(&target.whole().totals().unwrap());
    assert!(different.is_empty(), "{name}: {different:?}");
    target.release().unwrap();
    let target = WholeStore::open(&back).unwrap();
    let (before, after) = (rows_of(&source), rows_of(&target));
    for (key, value) in &before {
        let found = after.get(key);
        assert_eq!(found, Some(value), "{name}: {}", shown(key));
    }
    for key in after.keys() {
        assert!(before.contains_key(key), "{name}: {} is new", shown(key));
    }
    drop((source, target));
    SledStore::open(Options::at(&back)).unwrap();
    is_whole
}

fn pages_of(source: &WholeStore) -> Vec<MovedPage<PageRows>> {
    let mut pages = Vec::new();
    let mut read = source.pages(None);
    while let Some(page) = read().unwrap() {
        pages.push(page);
    }
    pages
}

/// The rows that are compared: all but those that depend on when their records were committed, the
/// counts that batches add and the rows of final requests by age (the check compares them), and
/// what is derived of SMS and logs that are being removed.
/// Last values are compared by device, whether a page has them yet or not.
fn rows_of(store: &WholeStore) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let db = store.rows.db();
    let has_removed_sms = db.scan_prefix(Table::RemovedSms.prefix()).next().is_some();
    let of_sms = [
        Table::Sms,
        Table::SmsOfId,
        Table::SmsForNetwork,
        Table::SmsDue,
        Table::SmsOpen,
        Table::SmsOfMessage,
        Table::SmsOfParts,
        Table::SmsCounted,
        Table::RemovedSms,
        Table::WakeUpSms,
    ];
    // The log of a removed customer goes kind by kind, and what is counted of it all at once.
    let has_removed_log = db.scan_prefix(Table::RemovedLog.prefix()).next().is_some();
    let of_log = [Table::DeviceInLog, Table::DevicesCounted];
    let mut rows = BTreeMap::new();
    for row in db.iter() {
        let (key, value) = row.unwrap();
        let table = Table::of(&key).unwrap();
        let of = |tables: &[Table]| tables.contains(&table);
        let left_out = [
            Table::LastGroup,
            Table::HeadPage,
            Table::HeadCheckpoint,
            Table::ValuePage,
            Table::Piece,
            Table::Counter,
            Table::CampaignDevicesCounted,
            Table::FinalByAge,
        ];
        let is_inexact = has_removed_sms && of(&of_sms) || has_removed_log && of(&of_log);
        if of(&left_out) || is_inexact {
            continue;
        }
        let whole = kv::load(&**db, &key).unwrap().unwrap().to_vec();
        if of(&[Table::EventBlock]) {
            add_events(&key, &whole, &mut rows);
        } else if of(&[Table::Entry]) {
            // The entry before the oldest one of a device may have been swept.
            rows.insert(key.to_vec(), unlink(&whole).unwrap().1.to_vec());
        } else if of(&[
            Table::Definition,
            Table::RemovedEvents,
            Table::DefinitionText,
        ]) {
            add_alike(table, &key, &value, &whole, &mut rows);
        } else {
            rows.insert(key.to_vec(), whole);
        }
        if of(&[Table::Device]) {
            let device = DeviceKey::from_bytes(key::last_id(&key).unwrap());
            let values = values_of(db, &store.heads, device).unwrap();
            let key = [&Table::ValuePage.prefix()[..], device.as_bytes()].concat();
            rows.insert(key, format!("{values:?}").into_bytes());
        }
    }
    rows
}

/// How events are divided among blocks is up to the groups they were committed in, and the event
/// before the oldest one of a device may have been swept.
fn add_events(key: &[u8], value: &[u8], rows: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
    let partition = &key[..key.len() - 8];
    for entry in Block::read(value).unwrap().entries() {
        let entry = entry.unwrap();
        let number = entry.queued.sequence.0.to_be_bytes();
        let row = format!("{:?} {:?}", entry.queued, entry.event);
        rows.insert([partition, &number].concat(), row.into_bytes());
    }
}

/// A text has an id of its own, and a note that nothing is removed says nothing.
fn add_alike(
    table: Table,
    key: &IVec,
    value: &IVec,
    whole: &[u8],
    rows: &mut BTreeMap<Vec<u8>, Vec<u8>>,
) {
    if table == Table::DefinitionText {
        let key = [&table.prefix()[..], whole].concat();
        rows.entry(key).or_default().push(1);
    } else if table == Table::Definition {
        rows.insert(key.to_vec(), Vec::new());
    } else if value[1..].iter().any(|byte| *byte != 0) {
        rows.insert(key.to_vec(), whole.to_vec());
    }
}

fn shown(key: &[u8]) -> String {
    format!("{:?} {}", Table::of(key), key.escape_ascii())
}
