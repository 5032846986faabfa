//! How is an embedded store read as a whole, and how is a new one written from another engine?
//!
//! A store that is being written has no row with its format until it is whole, so that no version
//! opens it, and a row with the place in the source that was reached. Each page is one batch of
//! sled with that row in it. Numbers of events are those of the source; the newest events of
//! devices are written once, at the end.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::path::Path;

use engine::delivery::backlog::Sequence;
use engine::moment::Timestamp;
use sled::{Db, IVec};

use self::read::{RecordReader, RecordRow, tables};
use super::check::OfflineStore;
use super::check::findings::noun;
use super::epochs::Epochs;
use super::fault::Fault;
use super::key::{self, Table};
use super::kv;
use super::ledger::{Ledger, SharedHeads};
use super::open;
use super::overlay::Overlay;
use crate::MigrationError;
use crate::migration::moved::{Moved, Singles};
use crate::migration::totals::Totals;
use crate::migration::{MovedPage, PAGE_BYTES};
use crate::postgres::PageRows;
use crate::record::group::read_group;
use crate::record::migration::{MigrationPlace, read_place, write_place};
use crate::record::number::{read_epoch, read_sequence, write_epoch, write_sequence};
use crate::record::server_key::{read_server_key, write_server_key};

/// The memory sled uses for the tree.
const CACHE_BYTES: u64 = 256 * 1_024 * 1_024;

/// The rows of the newest events that are written at once.
const HEAD_ROWS: usize = 1_024;

/// When the ledger of a store that is written is read: no device repeats a report of before.
const NOTHING_IS_RECENT: Timestamp = Timestamp::from_ms(i64::MAX);

/// A store that is read from its first row to its last, while no service runs.
pub(crate) struct WholeStore {
    rows: OfflineStore,
    /// The newest events of devices, and what they reported since their pages were written.
    heads: SharedHeads,
}

impl WholeStore {
    /// Opens the store in a directory.
    pub(crate) fn open(path: &Path) -> Result<Self, MigrationError> {
        let (db, lock) = open::open_offline(path, CACHE_BYTES)?;
        let ledger = Ledger::load(&db, NOTHING_IS_RECENT, Some(u32::MAX)).map_err(failed)?;
        Ok(Self {
            heads: ledger.heads(),
            rows: OfflineStore::of(db, path, lock),
        })
    }

    /// What tells this store, as it is, from every other: its last group of commits and its key.
    pub(crate) fn mark(&self) -> Result<String, MigrationError> {
        let db = self.rows.db();
        let mark = || -> Result<String, Fault> {
            let last = db.get(key::last_group())?;
            let last = last.map(|row| read_group(&row)).transpose()?;
            let last = last.unwrap_or_default();
            let key = db.get(key::server_key())?.unwrap_or_default();
            let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(format!(
                "embedded store, group {} of {}, key {key}",
                last.number,
                last.at.as_ms()
            ))
        };
        mark().map_err(failed)
    }

    /// What there is one of.
    pub(crate) fn singles(&self) -> Result<Singles, MigrationError> {
        singles(self.rows.db()).map_err(failed)
    }

    /// The pages behind a place, as the rows that PostgreSQL has of them.
    pub(crate) fn pages(
        &self,
        reached: Option<Vec<u8>>,
    ) -> impl FnMut() -> Result<Option<MovedPage<PageRows>>, MigrationError> + Send + use<'_> {
        let (db, heads) = (self.rows.db(), &self.heads);
        let mut reached = reached.unwrap_or_default();
        let mut tables = tables();
        tables.retain(|(table, _)| reached.first().is_none_or(|last| *table as u8 >= *last));
        let mut tables = tables.into_iter().peekable();
        move || {
            while let Some((table, reader)) = tables.peek().copied() {
                let page = page_of((db, heads), (table, reader), &reached)?;
                match page {
                    Some(page) => {
                        reached.clone_from(&page.reached);
                        return Ok(Some(page));
                    }
                    None => drop(tables.next()),
                }
            }
            Ok(None)
        }
    }

    /// The rows of the whole store, as PostgreSQL has them.
    pub(crate) fn totals(&self) -> Result<Totals, MigrationError> {
        let mut totals = Totals::default();
        let mut pages = self.pages(None);
        while let Some(page) = pages()? {
            page.rows.add_to(&mut totals);
        }
        Ok(totals)
    }
}

/// The next rows of a table behind a place.
fn page_of(
    (db, heads): (&Db, &SharedHeads),
    (table, read): (Table, RecordReader),
    reached: &[u8],
) -> Result<Option<MovedPage<PageRows>>, MigrationError> {
    let prefix = table.prefix();
    let from = match reached.starts_with(&prefix) {
        true => key::append(reached.to_vec(), &[0]),
        false => prefix.clone(),
    };
    let mut page = PageRows::default();
    let (mut last, mut count) = (None, 0);
    for key in db.range(from..key::behind(prefix)).keys() {
        let key = key.map_err(|error| failed(error.into()))?;
        let moved = records_of((db, heads), read, &key).map_err(|fault| {
            let (name, key) = (noun(table), key.escape_ascii());
            MigrationError::Failed(format!(
                "a row of the {name} cannot be read: {fault} ({key}); run `signalbox check`"
            ))
        })?;
        count += moved.len() as u64;
        moved.into_iter().for_each(|moved| page.add(moved));
        last = Some(key);
        if page.bytes() >= PAGE_BYTES {
            break;
        }
    }
    Ok(last.map(|last| MovedPage {
        rows: page,
        count,
        table: noun(table),
        reached: last.to_vec(),
    }))
}

fn records_of(
    (db, heads): (&Db, &SharedHeads),
    read: RecordReader,
    key: &[u8],
) -> Result<Vec<Moved>, Fault> {
    let value = kv::load(&**db, key)?.unwrap_or_default();
    let rest = key.get(1..).unwrap_or_default();
    read(&RecordRow {
        db,
        heads,
        key,
        rest,
        value: &value,
    })
}

fn singles(db: &Db) -> Result<Singles, Fault> {
    let epoch = db.get(key::epoch_begun())?;
    let newest = db.get(key::event::newest_number())?;
    let server_key = db.get(key::server_key())?;
    Ok(Singles {
        epoch: epoch.map_or(Ok(0), |row| read_epoch(&row))?,
        newest: newest.map_or(Ok(Default::default()), |row| read_sequence(&row))?,
        server_key: server_key.map(|row| read_server_key(&row)).transpose()?,
    })
}

/// A store that is being written. No service can open it before it is released.
pub(crate) struct SledTarget {
    store: WholeStore,
    file: File,
    epochs: Epochs,
    ledger: Ledger,
    place: Option<MigrationPlace>,
}

impl SledTarget {
    /// Opens a directory without a store, or with a part of one.
    pub(crate) fn open(path: &Path) -> Result<Self, MigrationError> {
        let (db, lock, file) = open::open_unfinished(path, CACHE_BYTES)?;
        let opened = || -> Result<_, Fault> {
            let place = db.get(key::migration())?;
            let place = place.map(|row| read_place(&row)).transpose()?;
            Ok((
                place,
                Epochs::load(&db)?,
                Ledger::load(&db, NOTHING_IS_RECENT, None)?,
            ))
        };
        let (place, epochs, ledger) = opened().map_err(failed)?;
        if place.is_none() && db.iter().next().is_some() {
            return Err(MigrationError::NotEmpty(
                "there is a store in the directory",
            ));
        }
        Ok(Self {
            store: WholeStore {
                heads: ledger.heads(),
                rows: OfflineStore::of(db, path, lock),
            },
            file,
            epochs,
            ledger,
            place,
        })
    }

    /// The mark of the source of which it has a part.
    pub(crate) fn source(&self) -> Option<String> {
        self.place.as_ref().map(|place| place.source.clone())
    }

    /// The place in the source that was reached.
    pub(crate) fn reached(&self) -> Option<Vec<u8>> {
        let place = self.place.as_ref()?;
        (!place.reached.is_empty()).then(|| place.reached.clone())
    }

    /// Begins with a source.
    pub(crate) fn begin(&mut self, source: &str) -> Result<(), MigrationError> {
        self.place = Some(MigrationPlace {
            source: source.to_owned(),
            reached: Vec::new(),
        });
        let db = self.store.rows.db().clone();
        self.persist(Overlay::new(&db)).map_err(failed)?;
        open::sync_created(self.store.rows.path())?;
        Ok(())
    }

    /// Writes a page.
    pub(crate) fn write(&mut self, page: MovedPage<Vec<Moved>>) -> Result<(), MigrationError> {
        let db = self.store.rows.db().clone();
        let mut rows = Overlay::new(&db);
        let written = || -> Result<(), Fault> {
            write::put_all(page.rows, &mut self.epochs, &mut self.ledger, &mut rows)?;
            self.ledger.pack_group(&mut rows)?;
            if let Some(place) = &mut self.place {
                place.reached = page.reached;
            }
            self.persist(rows)?;
            self.ledger.settle();
            Ok(())
        };
        written().map_err(failed)
    }

    /// Writes what there is one of, and the newest events of devices.
    pub(crate) fn end(&mut self, singles: &Singles) -> Result<(), MigrationError> {
        let mut ended = || -> Result<(), Fault> {
            let db = self.store.rows.db().clone();
            let mut rows = Overlay::new(&db);
            if singles.epoch > 0 {
                let epoch = IVec::from(&write_epoch(singles.epoch));
                rows.put(key::epoch_begun().into(), epoch);
            }
            if singles.newest > Sequence::default() {
                let newest = IVec::from(&write_sequence(singles.newest));
                rows.put(key::event::newest_number().into(), newest);
            }
            if let Some(server_key) = &singles.server_key {
                rows.put(
                    key::server_key().into(),
                    write_server_key(server_key).as_slice().into(),
                );
            }
            self.persist(rows)?;
            self.ledger = Ledger::load(&db, NOTHING_IS_RECENT, None)?;
            let mut is_complete = false;
            while !is_complete {
                let mut rows = Overlay::new(&db);
                is_complete = self.ledger.write_heads(HEAD_ROWS, &mut rows)?;
                self.persist(rows)?;
            }
            Ok(())
        };
        ended().map_err(failed)
    }

    /// The store, to be read.
    pub(crate) fn whole(&self) -> &WholeStore {
        &self.store
    }

    /// Checks every row.
    pub(crate) fn check(&self) -> Result<(), MigrationError> {
        let report = self.store.rows.check();
        let mut findings: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        findings.extend(report.stopped);
        match findings.is_empty() {
            true => Ok(()),
            false => Err(MigrationError::Broken(findings.join(", "))),
        }
    }

    /// Lets services open it.
    pub(crate) fn release(mut self) -> Result<(), MigrationError> {
        self.place = None;
        let db = self.store.rows.db().clone();
        let mut rows = Overlay::new(&db);
        rows.remove(key::migration());
        rows.put(key::format().into(), open::format_row());
        self.persist(rows).map_err(failed)?;
        open::sync_created(self.store.rows.path())?;
        Ok(())
    }

    /// Makes rows durable, with the place that was reached.
    fn persist(&mut self, mut rows: Overlay<'_>) -> Result<(), Fault> {
        if let Some(place) = &self.place {
            let row = write_place(place);
            rows.put(key::migration().into(), row.as_slice().into());
        }
        let changed = rows.len();
        let db = self.store.rows.db();
        db.apply_batch(rows.into_batch())?;
        db.flush()?;
        self.file.sync_data().map_err(Fault::Sync)?;
        super::committer::free_replaced(changed);
        Ok(())
    }
}

fn failed(fault: Fault) -> MigrationError {
    MigrationError::Failed(fault.to_string())
}
