//! How is the store of the configuration opened, with the key of the secrets in it?

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actors::clock::wall_clock;
use actors::http::{HttpError, trust};
use store::sealed::{KeyError, MasterKey};
use store::{
    Backup, Loss, OfflineStore, OpenError, Options, PostgresOpenError, PostgresOptions,
    PostgresStore, PostgresUrl, Pressure, RekeyError, RekeyReport, SledStore, Store,
};
use tokio::time::sleep;

use crate::config::{Config, StoreChoice};
use crate::setting_file::{UnreadableSettingFile, read, read_if_set};

/// How often it is asked whether the store has failed.
const LOOK: Duration = Duration::from_millis(500);

/// An open store.
pub(crate) struct Storage {
    /// The store.
    pub(crate) store: Arc<dyn Store>,
    /// Copies it, or says what does.
    pub(crate) backups: Arc<dyn Backup>,
    /// What was lost from its end before it was opened.
    pub(crate) lost: Option<Loss>,
    /// The key of the secrets in it.
    pub(crate) master_key: Arc<MasterKey>,
}

/// Why there is no open store.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The embedded store cannot be opened.
    #[error(transparent)]
    Embedded(#[from] OpenError),
    /// The store on PostgreSQL cannot be opened.
    #[error("{database}: {source}")]
    Postgres {
        /// Its database.
        database: Box<PostgresUrl>,
        /// The cause.
        source: PostgresOpenError,
    },
    /// A file that the configuration names cannot be read.
    #[error(transparent)]
    File(#[from] UnreadableSettingFile),
    /// The file with the password has none.
    #[error("store_password_file {0}: there is no password in it")]
    NoPassword(PathBuf),
    /// TLS cannot be set up.
    #[error("cannot use store_ca_file: {0}")]
    Tls(#[from] HttpError),
    /// The master key cannot be read or generated.
    #[error(transparent)]
    MasterKey(#[from] KeyError),
    /// There is a store, and its key is gone.
    #[error(
        "the file master-key is missing in {0}: put it back, or set SIGNALBOX_MASTER_KEY; without \
         it the secrets in the store cannot be decrypted"
    )]
    MasterKeyMissing(PathBuf),
    /// Some secrets may be sealed with the next master key.
    #[error("the change of the master key in {0} was interrupted: run `signalbox rekey` again")]
    MasterKeyChanging(PathBuf),
}

impl StorageError {
    /// Whether it is worth waiting for the server.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Postgres {
                source: PostgresOpenError::Unreachable(_),
                ..
            }
        )
    }
}

/// A command is for the embedded store alone.
#[derive(Debug, thiserror::Error)]
#[error("the store is on PostgreSQL, not in the data directory: {instead}")]
pub struct NotEmbedded {
    /// What does the same on PostgreSQL.
    instead: &'static str,
}

/// The directory of the embedded store; on PostgreSQL, what to use instead of a command for it.
pub(crate) fn directory(config: &Config, instead: &'static str) -> Result<PathBuf, NotEmbedded> {
    match &config.store {
        StoreChoice::Embedded => Ok(directory_in(&config.data_dir)),
        StoreChoice::Postgres(_) => Err(NotEmbedded { instead }),
    }
}

/// A store that no service uses.
pub(crate) enum UnusedStore {
    /// In the data directory.
    Embedded(OfflineStore),
    /// On PostgreSQL; a service that uses it all the same cannot write from then on.
    Postgres(Box<PostgresStore>),
}

impl UnusedStore {
    /// The store of a stopped service.
    pub(crate) fn open(config: &Config) -> Result<Self, StorageError> {
        match &config.store {
            StoreChoice::Embedded => {
                let store = OfflineStore::open(&directory_in(&config.data_dir))?;
                Ok(Self::Embedded(store))
            }
            StoreChoice::Postgres(database) => {
                let opened = PostgresStore::open(postgres_options(config, database)?);
                let refused = |source| StorageError::Postgres {
                    database: database.clone(),
                    source,
                };
                Ok(Self::Postgres(Box::new(opened.map_err(refused)?)))
            }
        }
    }

    /// Seals every secret with another key.
    pub(crate) fn rekey(
        &self,
        from: &MasterKey,
        to: &MasterKey,
    ) -> Result<RekeyReport, RekeyError> {
        match self {
            Self::Embedded(store) => store.rekey(from, to),
            Self::Postgres(store) => store.rekey(from, to),
        }
    }
}

/// Returns when the store has failed.
pub(crate) async fn failed(store: &dyn Store) {
    while store.pressure() != Pressure::Failed {
        sleep(LOOK).await;
    }
}

/// Opens the store.
pub(crate) async fn open(config: &Config) -> Result<Storage, StorageError> {
    match &config.store {
        StoreChoice::Embedded => open_embedded(config),
        StoreChoice::Postgres(database) => open_postgres(config, database.clone()).await,
    }
}

fn open_embedded(config: &Config) -> Result<Storage, StorageError> {
    let path = directory_in(&config.data_dir);
    let is_new = !path.join("rows").exists();
    // The key is there before the store, whose secrets would be lost without it.
    let new_key = is_new.then(|| key_of_new_store(config)).transpose()?;
    let store = SledStore::open(Options {
        cache_bytes: u64::from(config.store_cache_mib) << 20,
        queue_max: config.store_queue_max,
        disk_reserve_bytes: u64::from(config.disk_reserve_mib) << 20,
        reserve_file_bytes: u64::from(config.disk_reserve_file_mib) << 20,
        last_values_max: config.last_values_max,
        accept_loss: config.accept_loss,
        now: wall_clock,
        ..Options::at(path)
    })?;
    let master_key = new_key.map_or_else(|| key_of_store(config), Ok)?;
    let lost = store.accepted_loss();
    let store = Arc::new(store);
    Ok(Storage {
        store: store.clone(),
        backups: store,
        lost,
        master_key: Arc::new(master_key),
    })
}

/// How the database of the configuration is used.
pub(crate) fn postgres_options(
    config: &Config,
    database: &PostgresUrl,
) -> Result<PostgresOptions, StorageError> {
    let authorities = read_if_set("store_ca_file", config.store_ca_file.as_deref())?;
    let password = config.store_password_file.as_deref();
    Ok(PostgresOptions {
        readers: config.store_readers,
        queue_max: config.store_queue_max,
        last_values_max: config.last_values_max,
        now: wall_clock,
        ..PostgresOptions::at(
            match password.map(password_in).transpose()? {
                Some(password) => database.clone().with_password(&password),
                None => database.clone(),
            },
            trust::client_config(authorities.as_deref())?,
        )
    })
}

async fn open_postgres(
    config: &Config,
    database: Box<PostgresUrl>,
) -> Result<Storage, StorageError> {
    let options = postgres_options(config, &database)?;
    let opened = tokio::task::spawn_blocking(|| PostgresStore::open(options)).await;
    let opened = opened.expect("a store is opened without a panic");
    let store = opened.map_err(|source| StorageError::Postgres { database, source })?;
    let master_key = match store.is_new() {
        true => key_of_new_store(config)?,
        false => key_of_store(config)?,
    };
    let store = Arc::new(store);
    Ok(Storage {
        store: store.clone(),
        backups: store,
        lost: None,
        master_key: Arc::new(master_key),
    })
}

/// The directory of the embedded store in a data directory.
pub(crate) fn directory_in(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}

fn password_in(path: &Path) -> Result<String, StorageError> {
    let octets = read("store_password_file", path)?;
    let text = String::from_utf8(octets).unwrap_or_default();
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(StorageError::NoPassword(path.to_owned())),
        password => Ok(password.to_owned()),
    }
}

/// The key of the secrets in a store that has some. None is generated: it could not decrypt them.
pub(crate) fn key_of_store(config: &Config) -> Result<MasterKey, StorageError> {
    match config.master_key.is_some() || MasterKey::is_in(&config.data_dir) {
        true => key_of_new_store(config),
        false => Err(StorageError::MasterKeyMissing(config.data_dir.clone())),
    }
}

/// The key for the secrets of a store that has none yet; without one in the configuration or the
/// data directory it is generated there.
pub(crate) fn key_of_new_store(config: &Config) -> Result<MasterKey, StorageError> {
    let key = match &config.master_key {
        Some(key) => MasterKey::parse(key.expose()),
        None if MasterKey::is_being_replaced(&config.data_dir) => {
            return Err(StorageError::MasterKeyChanging(config.data_dir.clone()));
        }
        None => MasterKey::load_or_make(&config.data_dir),
    };
    Ok(key?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_may_be_in_a_file_whose_faults_name_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let missing = password_in(&path).unwrap_err().to_string();
        assert!(
            missing.starts_with("cannot read store_password_file"),
            "{missing}"
        );
        std::fs::write(&path, "\n").unwrap();
        let empty = password_in(&path).unwrap_err().to_string();
        assert!(empty.contains("there is no password"), "{empty}");
        std::fs::write(&path, " with spaces \r\n").unwrap();
        assert_eq!(password_in(&path).unwrap(), " with spaces ");
    }
}
