//! How is the master key changed, while no service runs? Every secret of the store is sealed with a
//! new key, which then takes the place of the old one.
//!
//! ```text
//! master-key --new key--> master-key and master-key.next --all resealed--> master-key
//! ```
//!
//! A run that was interrupted is repeated: it continues with the same new key. Until then the
//! service does not start, because it would know only one of the two keys.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use store::sealed::{KeyError, MasterKey};
use store::{RekeyError, RekeyReport};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::storage::{StorageError, UnusedStore};

/// The exit status if a secret was sealed with neither key.
const UNOPENED: u8 = 1;

/// Why the master key was not changed.
#[derive(Debug, thiserror::Error)]
pub enum RekeyFault {
    /// The store cannot be opened.
    #[error("{0}; the service must be stopped")]
    Store(#[from] StorageError),
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The file with the new key cannot be read.
    #[error("cannot read {path}: {source}")]
    NewKey {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The data directory has no key.
    #[error("there is no file master-key in {0}")]
    NoKey(PathBuf),
    /// The configuration gives the key, so it must also give the new one.
    #[error("the configuration gives the master key: write the new one to a file, --new-key FILE")]
    NoNewKey,
    /// An interrupted change has another new key.
    #[error("a change to another key was interrupted: run `signalbox rekey` without --new-key")]
    OtherKey,
    /// Not every secret was sealed.
    #[error(transparent)]
    Rekey(#[from] RekeyError),
}

/// Changes the master key of the service with this configuration to the one in a file, or to a
/// random one.
pub fn run(config: &Config, new_key: Option<&Path>) -> Result<ExitCode, RekeyFault> {
    let store = UnusedStore::open(config)?;
    let given = new_key.map(read).transpose()?;
    let report = match &config.master_key {
        Some(old) => {
            let old = MasterKey::parse(old.expose())?;
            let new = MasterKey::parse(&given.ok_or(RekeyFault::NoNewKey)?)?;
            let report = store.rekey(&old, &new)?;
            println!("set SIGNALBOX_MASTER_KEY to the new key before the service starts");
            report
        }
        None => in_data_dir(
            &store,
            &config.data_dir,
            given.as_ref().map(|it| it.as_str()),
        )?,
    };
    let RekeyReport {
        resealed,
        already,
        unopened,
    } = report;
    println!("{resealed} secrets encrypted with the new master key, {already} were before");
    if unopened == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("signalbox: {unopened} secrets cannot be decrypted with the old key, and are left");
    Ok(ExitCode::from(UNOPENED))
}

fn in_data_dir(
    store: &UnusedStore,
    data_dir: &Path,
    given: Option<&str>,
) -> Result<RekeyReport, RekeyFault> {
    if !MasterKey::is_in(data_dir) {
        return Err(RekeyFault::NoKey(data_dir.to_path_buf()));
    }
    let old = MasterKey::load_or_make(data_dir)?;
    let new = MasterKey::load_or_make_next(data_dir, given)?;
    if let Some(given) = given
        && !new.is(&MasterKey::parse(given)?)
    {
        return Err(RekeyFault::OtherKey);
    }
    let report = store.rekey(&old, &new)?;
    MasterKey::replace(data_dir)?;
    Ok(report)
}

fn read(path: &Path) -> Result<Zeroizing<String>, RekeyFault> {
    let text = fs::read_to_string(path).map_err(|source| RekeyFault::NewKey {
        path: path.to_path_buf(),
        source,
    })?;
    Ok(Zeroizing::new(text))
}
