//! Do the rows of a store agree with each other? Asked while no service runs.
//!
//! A row either is a record or is derived from records: it lists one, or counts several. What is
//! derived from a record is what a commit writes for it, so each record is applied to an empty tree
//! and the rows that appear there are looked up in the store. A table of derived rows with more
//! rows than those has lost records, or was not updated. Rows are read one after the other and
//! forgotten, except for the number of the newest event of each device and the counts of the log of
//! one customer.

mod counts;
pub(super) mod derived;
mod events;
pub(super) mod findings;
mod log;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sled::{Db, IVec, Tree};

use self::derived::{Derivation, Derived, Expected};
pub use self::findings::{Finding, Problem};
use self::findings::{Findings, noun, readable};
use super::fault::Fault;
use super::key::{self, Table};
use super::last_group::{StoreEnd, end_of};
use super::open::{self, OpenError};
use crate::record::Unreadable;

/// The memory sled uses for the tree while it is checked.
const CACHE_BYTES: u64 = 64 * 1_024 * 1_024;

/// A store that is open while no service runs: to check it, or to change the master key. No other
/// process can open it meanwhile.
pub struct OfflineStore {
    db: Db,
    path: PathBuf,
    /// Held until everything else is closed.
    _lock: File,
}

/// What a check has found.
#[derive(Debug)]
pub struct CheckReport {
    /// How many rows were read.
    pub rows: u64,
    /// What does not hold; one finding for each kind of rows and problem.
    pub findings: Vec<Finding>,
    /// Why not all rows could be read.
    pub stopped: Option<String>,
}

impl OfflineStore {
    /// Opens the store in a directory as it is.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let (db, lock) = open::open_offline(path, CACHE_BYTES)?;
        Ok(Self::of(db, path, lock))
    }

    /// The store whose rows these are, as long as it is locked.
    pub(super) fn of(db: Db, path: &Path, lock: File) -> Self {
        Self {
            db,
            path: path.to_path_buf(),
            _lock: lock,
        }
    }

    /// Checks every row.
    pub fn check(&self) -> CheckReport {
        let mut findings = Findings::default();
        let mut rows = 0;
        let read = open::quietly(|| self.read(&mut findings, &mut rows));
        let stopped = match read {
            Ok(read) => read.err().map(|fault| fault.to_string()),
            Err(_) => Some("the bytes of the rows are not what was written".to_owned()),
        };
        CheckReport {
            rows,
            findings: findings.into_vec(),
            stopped,
        }
    }

    /// The rows.
    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self, findings: &mut Findings, rows: &mut u64) -> Result<(), Fault> {
        self.read_end(findings)?;
        let path = self.path.join("check");
        // A check that was killed leaves it.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Fault::Sync(error)),
            _ => {}
        }
        let empty = sled::Config::new()
            .path(path)
            .temporary(true)
            .flush_every_ms(None)
            .open()?;
        self.read_records(&empty, findings, rows)?;
        counts::check(&self.db, findings)?;
        log::check(&self.db, &empty, findings)?;
        events::check(&self.db, findings)
    }

    /// Compares the last group with the one that was noted.
    fn read_end(&self, findings: &mut Findings) -> Result<(), Fault> {
        match end_of(&self.path.join("last-group"), &self.db) {
            Ok((_, StoreEnd::Complete)) => {}
            Ok((_, StoreEnd::Unknown)) => {
                let note = "the file last-group";
                findings.add("notes of the last group", Problem::Unreadable, 1, note);
            }
            Ok((_, StoreEnd::Lost(loss))) => {
                let span = format!("from {} to {}", loss.from.iso(), loss.until.iso());
                findings.add("groups of commits", Problem::Missing, loss.groups, &span);
            }
            Err(Fault::Unreadable(why)) => {
                findings.unreadable(Table::LastGroup, &key::last_group(), &why);
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Decodes every row and looks up those that are derived from it.
    fn read_records(
        &self,
        empty: &Tree,
        findings: &mut Findings,
        rows: &mut u64,
    ) -> Result<(), Fault> {
        let mut derivation = Derivation::new(&self.db, empty)?;
        let mut stored: BTreeMap<Table, u64> = BTreeMap::new();
        let mut matched: BTreeMap<Table, u64> = BTreeMap::new();
        for key in self.db.iter().keys() {
            let key = key?;
            *rows += 1;
            let Some(table) = Table::of(&key) else {
                findings.add(
                    "rows of unknown tables",
                    Problem::Surplus,
                    1,
                    &readable(&key),
                );
                continue;
            };
            *stored.entry(table).or_default() += 1;
            for (derived, expected) in self.derived(&mut derivation, table, &key, findings)? {
                let table = Table::of(&derived).ok_or(Unreadable::Damaged("a key"))?;
                if self.is_stored(table, &derived, &expected, findings)? {
                    *matched.entry(table).or_default() += 1;
                }
            }
        }
        let mut surplus = derived::TABLES.to_vec();
        surplus.retain(|table| stored.get(table) > matched.get(table));
        if surplus.is_empty() {
            return Ok(());
        }
        self.read_surplus(&surplus, &mut derivation, findings)
    }

    /// The rows derived from a row; none if it cannot be decoded.
    fn derived(
        &self,
        derivation: &mut Derivation<'_>,
        table: Table,
        key: &IVec,
        findings: &mut Findings,
    ) -> Result<Derived, Fault> {
        match derivation.of_row(table, key) {
            Ok(derived) => Ok(derived),
            Err(Fault::Unreadable(why)) => {
                findings.unreadable(table, key, &why);
                Ok(Vec::new())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Whether a derived row is there.
    fn is_stored(
        &self,
        table: Table,
        key: &IVec,
        expected: &Expected,
        findings: &mut Findings,
    ) -> Result<bool, Fault> {
        let row = self.db.get(key)?;
        let problem = match (&row, expected) {
            (None, Expected::Row(_) | Expected::Any) => Problem::Missing,
            (Some(row), Expected::Row(expected)) if row != expected => Problem::Different,
            (Some(_), Expected::Row(_) | Expected::Any) | (_, Expected::Perhaps) => {
                return Ok(row.is_some());
            }
        };
        findings.add(noun(table), problem, 1, &readable(key));
        Ok(row.is_some())
    }

    /// Finds the rows of these tables that are derived from nothing.
    fn read_surplus(
        &self,
        tables: &[Table],
        derivation: &mut Derivation<'_>,
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        let mut derived: HashSet<u64> = HashSet::new();
        // What cannot be decoded is known already.
        let mut known = Findings::default();
        for key in self.db.iter().keys() {
            let key = key?;
            let Some(table) = Table::of(&key) else {
                continue;
            };
            let rows = self.derived(derivation, table, &key, &mut known)?;
            let rows = rows.iter().map(|(key, _)| key);
            let wanted = rows.filter(|key| Table::of(key).is_some_and(|it| tables.contains(&it)));
            derived.extend(wanted.map(hash));
        }
        for table in tables {
            for key in self.db.scan_prefix(table.prefix()).keys() {
                let key = key?;
                if !derived.contains(&hash(&key)) {
                    findings.add(noun(*table), Problem::Surplus, 1, &readable(&key));
                }
            }
        }
        Ok(())
    }
}

fn hash(key: &IVec) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
