//! How are the secrets of a record sealed with another master key?

use engine::idempotency::{IdempotencyKey, IdentifiedDevice};
use engine::ids::DeviceKey;
use engine::sealed::Sealed;
use engine::sealing::{HoldsSecrets, SecretOwner};

use crate::record::Unreadable;
use crate::record::bootstrap::{read_config, write_config};
use crate::record::destination::{read_destination, write_destination};
use crate::record::idempotency::{read_idempotency_record, write_idempotency_record};
use crate::record::profile::{read_profile, write_profile};
use crate::record::server_key::{read_server_key, write_server_key};
use crate::sealed::MasterKey;

/// What became of the secrets of a store.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RekeyReport {
    /// Those that are sealed with the new key from now on.
    pub resealed: u64,
    /// Those that were sealed with the new key before.
    pub already: u64,
    /// Those that the old key does not open either. They are left as they are.
    pub unopened: u64,
}

/// Why not all secrets were sealed anew. A further run continues.
#[derive(Debug, thiserror::Error)]
#[error("the store cannot be read or written: {0}")]
pub struct RekeyError(pub(crate) String);

/// Decodes records, seals their secrets anew, and encodes them again.
pub(crate) struct Resealer<'a> {
    from: &'a MasterKey,
    to: &'a MasterKey,
    /// What became of the secrets so far.
    pub(crate) report: RekeyReport,
}

impl<'a> Resealer<'a> {
    /// Seals with another key.
    pub(crate) fn new(from: &'a MasterKey, to: &'a MasterKey) -> Self {
        Self {
            from,
            to,
            report: RekeyReport::default(),
        }
    }

    /// The profile of a device.
    pub(crate) fn profile(&mut self, value: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let mut profile = read_profile(value)?;
        profile.visit_secrets(&mut |owner, secret| self.seal(owner, secret));
        Ok(write_profile(&profile))
    }

    /// A destination.
    pub(crate) fn destination(&mut self, value: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let mut destination = read_destination(value)?;
        destination.visit_secrets(&mut |owner, secret| self.seal(owner, secret));
        Ok(write_destination(&destination))
    }

    /// The private key of the service.
    pub(crate) fn server_key(&mut self, value: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let mut key = read_server_key(value)?;
        self.seal(SecretOwner::ServerKey, &mut key);
        Ok(write_server_key(&key))
    }

    /// What a device is given when it is bootstrapped.
    pub(crate) fn bootstrap_config(
        &mut self,
        device: DeviceKey,
        value: &[u8],
    ) -> Result<Vec<u8>, Unreadable> {
        let mut config = read_config(value)?;
        for secret in config.keys_mut() {
            self.seal(SecretOwner::Bootstrap(device), secret);
        }
        Ok(write_config(&config))
    }

    /// An idempotency record.
    pub(crate) fn idempotency_record(
        &mut self,
        key: IdempotencyKey,
        device: Option<IdentifiedDevice>,
        value: &[u8],
    ) -> Result<Vec<u8>, Unreadable> {
        let mut record = read_idempotency_record(key, device, value)?;
        record.visit_secrets(&mut |owner, secret| self.seal(owner, secret));
        Ok(write_idempotency_record(&record))
    }

    fn seal(&mut self, owner: SecretOwner<'_>, secret: &mut Sealed) {
        if self.to.has_sealed(secret) {
            self.report.already += 1;
            return;
        }
        let context = owner.context();
        match self.from.open(secret, &context) {
            Ok(plain) => {
                *secret = self.to.seal(&plain, &context);
                self.report.resealed += 1;
            }
            Err(_) => self.report.unopened += 1,
        }
    }
}
