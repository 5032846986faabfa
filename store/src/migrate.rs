//! How is a store moved to the other engine, and what must hold at the end?
//!
//! ```text
//!  source --pages, in the order of its keys--> target, one transaction for each page
//!                                              with the place that was reached
//!  rows and digests of source and target --equal--> the target can be used
//! ```
//!
//! Records are moved and what is derived from them is written anew: the indexes and counts of the
//! embedded engine, the columns of PostgreSQL. An interrupted migration is continued where its last
//! page ended, if its source is as it was. Until its end the target is refused by a service. Both
//! ends are compared as the rows that PostgreSQL has of them.

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::PostgresOptions;
use crate::migration::moved::Singles;
use crate::migration::totals::Totals;
use crate::migration::{MigrationError, MigrationProgress, MigrationReport, MovedPage, Told};
use crate::postgres::{PostgresSource, PostgresTarget};
use crate::sled::{SledTarget, WholeStore};

/// How many pages are read ahead of the one that is written.
const PAGES_AHEAD: usize = 2;

/// Moves an embedded store to an empty database. Not to be called on a runtime.
pub fn migrate_to_postgres(
    from: &Path,
    to: &PostgresOptions,
    told: Told<'_>,
) -> Result<MigrationReport, MigrationError> {
    let source = WholeStore::open(from)?;
    let mark = source.mark()?;
    let mut target = PostgresTarget::begin(to, &mark)?;
    if target.reached().is_some() {
        told(MigrationProgress::Continued);
    }
    let pages = source.pages(target.reached());
    transfer(pages, |page| target.write(page), told)?;
    let singles = source.singles()?;
    target.end(&singles)?;
    told(MigrationProgress::Comparing);
    let (of_source, of_target) = thread::scope(|scope| {
        let of_source = scope.spawn(|| source.totals());
        let of_target = target.totals();
        (joined(of_source), of_target)
    });
    let report = compare(of_source?, &of_target?, singles)?;
    target.release()?;
    Ok(report)
}

/// Moves a store on PostgreSQL to a directory without a store. A service on the database writes
/// nothing more. Not to be called on a runtime.
pub fn migrate_to_embedded(
    from: &PostgresOptions,
    to: &Path,
    told: Told<'_>,
) -> Result<MigrationReport, MigrationError> {
    let mut source = PostgresSource::open(from)?;
    let mut target = SledTarget::open(to)?;
    let mark = match target.source() {
        Some(mark) if mark == source.mark()? => {
            told(MigrationProgress::Continued);
            mark
        }
        Some(_) => return Err(MigrationError::OtherSource),
        None => {
            source.fence()?;
            let mark = source.mark()?;
            target.begin(&mark)?;
            mark
        }
    };
    let pages = source.pages(target.reached());
    transfer(pages, |page| target.write(page), told)?;
    let singles = source.singles()?;
    target.end(&singles)?;
    told(MigrationProgress::Comparing);
    let (of_source, of_target) = thread::scope(|scope| {
        let of_source = scope.spawn(|| source.totals());
        let of_target = target.whole().totals();
        (joined(of_source), of_target)
    });
    let report = compare(of_source?, &of_target?, singles)?;
    if source.mark()? != mark {
        return Err(MigrationError::SourceChanged);
    }
    target.check()?;
    target.release()?;
    Ok(report)
}

/// Writes the pages while the next ones are read.
fn transfer<R: Send>(
    mut pages: impl FnMut() -> Result<Option<MovedPage<R>>, MigrationError> + Send,
    mut write: impl FnMut(MovedPage<R>) -> Result<(), MigrationError>,
    told: Told<'_>,
) -> Result<(), MigrationError> {
    let (sender, receiver) = sync_channel(PAGES_AHEAD);
    thread::scope(|scope| {
        let reading = scope.spawn(move || {
            while let Some(page) = pages()? {
                // The writer has failed, and says why.
                if sender.send(page).is_err() {
                    break;
                }
            }
            Ok(())
        });
        let written = write_all(receiver, &mut write, told);
        written.and(joined(reading))
    })
}

fn write_all<R>(
    pages: Receiver<MovedPage<R>>,
    write: &mut dyn FnMut(MovedPage<R>) -> Result<(), MigrationError>,
    told: Told<'_>,
) -> Result<(), MigrationError> {
    let mut rows = 0;
    for page in pages {
        rows += page.count;
        let moved = MigrationProgress::Moved(page.table, rows);
        write(page)?;
        told(moved);
    }
    Ok(())
}

fn compare(
    source: Totals,
    target: &Totals,
    singles: Singles,
) -> Result<MigrationReport, MigrationError> {
    let different = source.differences(target);
    match different.is_empty() {
        true => Ok(MigrationReport {
            tables: source.into_tables(),
            server_key: singles.server_key,
        }),
        false => Err(MigrationError::Different(different.join(", "))),
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
