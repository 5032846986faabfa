//! How does the command move a store to the other engine? Both ends are named, a directory and a
//! database, and no service may run on either.
//!
//! What is in the data directory beside the store stays what it is: the master key, the operator
//! token, the files of firmware images. They go with a store that is moved to another directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use store::sealed::{KeyError, MasterKey};
use store::{
    InvalidPostgresUrl, MigrationError, MigrationProgress, MigrationReport, PostgresUrl,
    migrate_to_embedded, migrate_to_postgres,
};

use crate::config::Config;
use crate::data_dir;
use crate::storage::{StorageError, directory_in, postgres_options};

/// How often the progress is printed.
const PRINTED_EVERY: Duration = Duration::from_secs(5);

/// What is in a data directory besides the store, and belongs to it.
const KEPT: [&str; 3] = ["master-key", "operator-token", "firmware"];

/// The exit status if the secrets of the store need another master key.
const OTHER_KEY: u8 = 1;

/// An end of a migration.
#[derive(Clone, Debug, PartialEq)]
pub enum MigrationEnd {
    /// A data directory.
    Directory(PathBuf),
    /// A database.
    Database(Box<PostgresUrl>),
}

/// Why nothing, or not all, was moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrateFault {
    /// Neither or both ends are a database.
    #[error("--from and --to have to be a data directory and a URL postgres://…, in either order")]
    SameEngine,
    /// A change of the master key was interrupted.
    #[error("the change of the master key in {0} was interrupted: run `signalbox rekey` again")]
    MasterKeyChanging(PathBuf),
    /// The options for the database cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The stores.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The master key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The data directory cannot be written.
    #[error("cannot prepare {path}: {source}")]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl MigrationEnd {
    /// Reads an end from the command line.
    pub fn parse(text: &str) -> Result<Self, InvalidPostgresUrl> {
        match text.contains("://") {
            true => Ok(Self::Database(Box::new(PostgresUrl::parse(text)?))),
            false => Ok(Self::Directory(text.into())),
        }
    }
}

/// Moves the store of a stopped service.
pub fn run(
    config: &Config,
    from: &MigrationEnd,
    to: &MigrationEnd,
) -> Result<ExitCode, MigrateFault> {
    use MigrationEnd::{Database, Directory};
    let mut progress = Progress::default();
    let mut told = |moved| progress.print(moved);
    let (report, left) = match (from, to) {
        (Directory(from), Database(to)) => {
            refuse_changing_key(from)?;
            let options = postgres_options(config, to)?;
            let report = migrate_to_postgres(&directory_in(from), &options, &mut told)?;
            let left = format!(
                "the service uses it with SIGNALBOX_STORE set to the database, {to}, and the same \
                 data directory, {}: it has the master key, the operator token and the files of \
                 firmware images. The embedded store in it is left as it was",
                from.display()
            );
            (report, left)
        }
        (Database(from), Directory(to)) => {
            let options = postgres_options(config, from)?;
            refuse_changing_key(&config.data_dir)?;
            let prepared = prepare(&config.data_dir, to);
            prepared.map_err(|source| MigrateFault::DataDir {
                path: to.clone(),
                source,
            })?;
            let report = migrate_to_embedded(&options, &directory_in(to), &mut told)?;
            (report, kept(config, to))
        }
        (Directory(_), Directory(_)) | (Database(_), Database(_)) => {
            return Err(MigrateFault::SameEngine);
        }
    };
    print(&report);
    println!("{left}");
    let data_dir = match (from, to) {
        (_, Directory(data_dir)) | (Directory(data_dir), _) => data_dir,
        (Database(_), Database(_)) => return Err(MigrateFault::SameEngine),
    };
    if has_other_key(config, data_dir, &report)? {
        eprintln!(
            "signalbox: the store is moved, but its secrets are encrypted with another master key \
             than that of {}: give the service the right one",
            data_dir.display()
        );
        return Ok(ExitCode::from(OTHER_KEY));
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the master key that the service would use is not that of the store.
fn has_other_key(
    config: &Config,
    data_dir: &Path,
    report: &MigrationReport,
) -> Result<bool, KeyError> {
    let key = match &config.master_key {
        Some(key) => MasterKey::parse(key.expose())?,
        None if MasterKey::is_in(data_dir) => MasterKey::load_or_make(data_dir)?,
        None => return Ok(false),
    };
    let sealed = report.server_key.as_ref();
    Ok(sealed.is_some_and(|sealed| !key.has_sealed(sealed)))
}

/// Secrets may be sealed with either of two keys while the key is being changed.
fn refuse_changing_key(data_dir: &Path) -> Result<(), MigrateFault> {
    match MasterKey::is_being_replaced(data_dir) {
        true => Err(MigrateFault::MasterKeyChanging(data_dir.to_path_buf())),
        false => Ok(()),
    }
}

/// Makes a private data directory.
fn prepare(from: &Path, to: &Path) -> io::Result<()> {
    data_dir::open(to)?;
    for name in ["master-key", "operator-token"] {
        let (source, target) = (from.join(name), to.join(name));
        if source.exists() && !target.exists() {
            copy_whole(&source, &target)?;
        }
    }
    File::open(to)?.sync_all()
}

/// Copies a file whole or not at all: a part of a key is none.
fn copy_whole(source: &Path, target: &Path) -> io::Result<()> {
    let partial = target.with_extension("partial");
    fs::copy(source, &partial)?;
    File::open(&partial)?.sync_all()?;
    fs::rename(&partial, target)
}

/// What is needed besides the store that was moved.
fn kept(config: &Config, to: &Path) -> String {
    let missing = KEPT.iter().filter(|name| !to.join(name).exists());
    let is_given = config.master_key.is_some();
    let missing = missing.filter(|name| !(is_given && **name == "master-key"));
    let there = missing.filter(|name| {
        // Images are optional, keys are not.
        **name != "firmware" || has_files(&config.data_dir.join(name))
    });
    let missing: Vec<_> = there.copied().collect();
    let to = to.display();
    let start = format!("the service uses it with --data-dir {to} and without SIGNALBOX_STORE");
    match missing.is_empty() {
        true => start,
        false => format!(
            "{start}; before, copy from its former data directory to {to}: {}",
            missing.join(", ")
        ),
    }
}

fn has_files(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut files| files.next().is_some())
}

fn print(report: &MigrationReport) {
    println!(
        "{:<26} {:>12}  digest, the same at both ends",
        "table", "rows"
    );
    for table in &report.tables {
        println!(
            "{:<26} {:>12}  {:032x}",
            table.table, table.rows, table.digest
        );
    }
}

/// Prints how far a migration is.
#[derive(Default)]
struct Progress {
    printed_at: Option<Instant>,
}

impl Progress {
    fn print(&mut self, progress: MigrationProgress) {
        match progress {
            MigrationProgress::Continued => println!("continued where the last run ended"),
            MigrationProgress::Comparing => println!("everything is moved; comparing both ends"),
            MigrationProgress::Moved(table, rows) => {
                let is_due = self
                    .printed_at
                    .is_none_or(|at| at.elapsed() >= PRINTED_EVERY);
                if is_due {
                    self.printed_at = Some(Instant::now());
                    println!("{rows} records moved, now those of {table}");
                }
            }
        }
    }
}
