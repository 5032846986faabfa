//! How is a backup of the running service made, and a store restored from it?
//!
//! A backup is written beside its place and moved there when it was read back and found whole, so
//! whatever has its name is complete.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use actix_rt::System;
use reqwest::StatusCode;
use store::sealed::MasterKey;
use store::{BackupFault, RestoreError, SledStore};

use crate::config::Config;
use crate::data_dir;
use crate::demo::reachable;
use crate::operator::OperatorToken;
use crate::storage::{self, NotEmbedded};

const PATH: &str = "/operator-api/v1/backup";

/// What to use for a store on PostgreSQL.
const INSTEAD_OF_BACKUP: &str = "back the database up with pg_dump or pg_basebackup";
const INSTEAD_OF_RESTORE: &str = "restore the database with pg_restore or from a base backup";

/// Why there is no backup, or no store restored from it.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file has the name.
    #[error("{0} exists; choose another name")]
    Exists(PathBuf),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The token of the operator is not known.
    #[error("cannot read the operator token: {0}")]
    OperatorToken(io::Error),
    /// The service did not answer, or not to the end.
    #[error("{url}: {source}")]
    NoAnswer {
        /// What was called.
        url: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// The service refused.
    #[error("{url}: {status} {body}")]
    Refused {
        /// What was called.
        url: String,
        /// The status code.
        status: StatusCode,
        /// The body of the response.
        body: String,
    },
    /// What was received is not a whole backup.
    #[error("the backup was not received whole: {0}")]
    Backup(#[from] BackupFault),
    /// The store is a database.
    #[error(transparent)]
    NotEmbedded(#[from] NotEmbedded),
    /// A backup cannot be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// Makes a backup of the service with this configuration, or of the one at an URL.
pub fn make(config: &Config, to: &Path, api: Option<&str>) -> Result<(), BackupError> {
    if to.exists() {
        return Err(BackupError::Exists(to.to_path_buf()));
    }
    let url = match api {
        Some(base) => format!("{}{PATH}", base.trim_end_matches('/')),
        None => {
            storage::directory(config, INSTEAD_OF_BACKUP)?;
            url_of(config)
        }
    };
    let token = OperatorToken::read(config).map_err(BackupError::OperatorToken)?;
    let partial = with_suffix(to, ".partial");
    let made = System::new()
        .block_on(receive(&url, &token, &partial))
        .and_then(|bytes| Ok((bytes, check(&partial)?)));
    let (bytes, rows) = made.inspect_err(|_| drop(fs::remove_file(&partial)))?;
    fs::rename(&partial, to).map_err(failed(to))?;
    println!("{}: {bytes} bytes, {rows} rows", to.display());
    Ok(())
}

/// Restores the store of this configuration from a backup.
pub fn restore(config: &Config, from: &Path) -> Result<(), BackupError> {
    let store = storage::directory(config, INSTEAD_OF_RESTORE)?;
    let backup = File::open(from).map_err(failed(from))?;
    data_dir::open(&config.data_dir).map_err(failed(&config.data_dir))?;
    let rows = SledStore::restore(&store, BufReader::new(backup))?;
    println!("{}: {rows} rows restored", store.display());
    if config.master_key.is_none() && !MasterKey::is_in(&config.data_dir) {
        println!(
            "put the file master-key of the old data directory into {}, or set \
             SIGNALBOX_MASTER_KEY: the service does not start without it",
            config.data_dir.display()
        );
    }
    Ok(())
}

/// The address at which the service with this configuration serves the operator.
fn url_of(config: &Config) -> String {
    let address: SocketAddr = reachable(config.operator_http.unwrap_or(config.http));
    let scheme = match config.tls() {
        Some(_) => "https",
        None => "http",
    };
    format!("{scheme}://{address}{PATH}")
}

/// Receives a backup into a file; returns how many bytes it has.
async fn receive(url: &str, token: &str, into: &Path) -> Result<u64, BackupError> {
    let no_answer = |source| BackupError::NoAnswer {
        url: url.to_owned(),
        source,
    };
    // A proxy in the environment is meant for other hosts.
    let mut http = reqwest::Client::builder().no_proxy();
    if url.starts_with("http://") {
        // Works on a machine without certificate authorities.
        http = http.tls_certs_only([]);
    }
    let http = http.build().map_err(no_answer)?;
    let call = http.get(url).bearer_auth(token).send();
    let mut response = call.await.map_err(no_answer)?;
    if response.status() != StatusCode::OK {
        return Err(BackupError::Refused {
            url: url.to_owned(),
            status: response.status(),
            body: response.text().await.unwrap_or_default(),
        });
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(into);
    let mut file = file.map_err(failed(into))?;
    let mut received = 0;
    while let Some(piece) = response.chunk().await.map_err(no_answer)? {
        file.write_all(&piece).map_err(failed(into))?;
        received += piece.len() as u64;
    }
    file.sync_all().map_err(failed(into))?;
    Ok(received)
}

fn check(path: &Path) -> Result<u64, BackupError> {
    let file = File::open(path).map_err(failed(path))?;
    Ok(SledStore::check_backup(BufReader::new(file))?)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn failed(path: &Path) -> impl Fn(io::Error) -> BackupError {
    let path = path.to_path_buf();
    move |source| BackupError::File {
        path: path.clone(),
        source,
    }
}
