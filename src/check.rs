//! Is the store of a stopped service whole? Prints what is not, one line for each kind of problem.

use std::path::Path;
use std::process::ExitCode;

use store::OfflineStore;

/// The exit status if something is lost or damaged.
const FINDINGS: u8 = 1;

/// The exit status if the store cannot be read, or not to its end.
const UNREADABLE: u8 = 2;

/// Checks the store in a data directory.
pub fn run(data_dir: &Path) -> ExitCode {
    let store = match OfflineStore::open(&data_dir.join("store")) {
        Ok(store) => store,
        Err(error) => {
            eprintln!("signalbox: {error}");
            return ExitCode::from(UNREADABLE);
        }
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
