//! With which key does the service prove its identity to devices that have no pre-shared one? With
//! that of the settings, or with one that is made at the first start and sealed in the store.

use std::io;
use std::sync::{PoisonError, RwLock};

use actors::devices::Devices;
use engine::associations::server_key::{InvalidServerKey, ServerKey};
use engine::sealing::SecretOwner;
use store::sealed::{CannotOpen, MasterKey};
use store::{Maintenance, Store, Unavailable};
use zeroize::Zeroizing;

use crate::tls::KeyMaterial;

/// How often a key is drawn: one of 2^32 numbers is none, and more in a row are no entropy.
const DRAWS: u32 = 4;

/// Why the key in the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoredKeyError {
    /// The system gives no entropy for a new one.
    #[error("the system gives no entropy for the private key of the service: {0}")]
    Entropy(io::Error),
    /// The store does not respond.
    #[error(transparent)]
    StoreSilent(#[from] Unavailable),
    /// It cannot be decrypted.
    #[error("cannot decrypt the private key of the service for DTLS: {0}")]
    Sealed(#[from] CannotOpen),
    /// It is none.
    #[error("the private key of the service for DTLS is damaged: run `signalbox check`")]
    Damaged,
}

/// The key of the service, as it is shown to devices now.
pub struct ShownServerKey(RwLock<ServerKey>);

impl ShownServerKey {
    /// A key that is shown from the start.
    pub fn new(key: ServerKey) -> Self {
        Self(RwLock::new(key))
    }

    /// The key.
    pub fn get(&self) -> ServerKey {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Shows another key from the next handshake on.
    pub fn replace(&self, key: ServerKey, devices: &Devices) {
        devices.show_server_key(&key);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

/// The key in files.
pub(crate) fn of_files(files: &KeyMaterial) -> Result<ServerKey, InvalidServerKey> {
    let certificates = files.certificates.iter().map(|it| it.as_ref().into());
    ServerKey::from_der(files.key.secret_der(), certificates.collect())
}

/// The key in the store, which is made if there is none yet.
pub(crate) async fn stored(
    store: &dyn Store,
    master_key: &MasterKey,
) -> Result<ServerKey, StoredKeyError> {
    let context = SecretOwner::ServerKey.context();
    let new = draw().map_err(StoredKeyError::Entropy)?;
    let sealed = Maintenance::server_key(store, master_key.seal(&*new, &context)).await?;
    let opened = master_key.open(&sealed, &context)?;
    let scalar = opened.as_slice().try_into();
    let scalar = scalar.map_err(|_| StoredKeyError::Damaged)?;
    ServerKey::from_scalar(scalar).map_err(|_| StoredKeyError::Damaged)
}

fn draw() -> io::Result<Zeroizing<[u8; 32]>> {
    for _ in 0..DRAWS {
        let mut scalar = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *scalar).map_err(io::Error::other)?;
        if ServerKey::from_scalar(&scalar).is_ok() {
            return Ok(scalar);
        }
    }
    Err(io::Error::other("no number of it is a key"))
}
