//! Is the store of a stopped service whole? Prints what is not, one line for each kind of problem.

use std::error::Error;
use std::process::ExitCode;

use store::OfflineStore;

use crate::config::Config;
use crate::data_dir;
use crate::storage;

/// The exit status if something is lost or damaged.
const FINDINGS: u8 = 1;

/// The exit status if the store cannot be read, or not to its end.
const UNREADABLE: u8 = 2;

/// What to use where the store is no directory.
const INSTEAD: &str = "check the database with pg_amcheck";

/// Checks the store of this configuration.
pub fn run(config: &Config) -> ExitCode {
    let unreadable = |error: &dyn Error| {
        eprintln!("signalbox: {error}");
        ExitCode::from(UNREADABLE)
    };
    let directory = match storage::directory(config, INSTEAD) {
        Ok(directory) => directory,
        Err(refused) => return unreadable(&refused),
    };
    data_dir::make_new_files_private();
    let store = match OfflineStore::open(&directory) {
        Ok(store) => store,
        Err(error) => return unreadable(&error),
    };
    let report = store.check();
    for finding in &report.findings {
        println!("{finding}");
    }
    println!(
        "{} rows read, {} findings",
        report.rows,
        report.findings.len()
    );
    if let Some(why) = report.stopped {
        eprintln!("signalbox: the rest of the store cannot be read: {why}; restore a backup");
        return ExitCode::from(UNREADABLE);
    }
    match report.findings.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FINDINGS),
    }
}
