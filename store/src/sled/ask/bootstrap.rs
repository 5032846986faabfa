//! What are devices given when they are bootstrapped, and how did that go last?

use engine::bootstrap::{BootstrapConfig, BootstrapRecord, BootstrapScope};
use engine::ids::DeviceKey;
use sled::Db;

use super::load;
use crate::record::bootstrap::{read_bootstrap, read_config};
use crate::sled::fault::Fault;
use crate::sled::key;

/// A configuration.
pub(in crate::sled) fn config(
    db: &Db,
    scope: &BootstrapScope,
) -> Result<Option<BootstrapConfig>, Fault> {
    load(db, &key::bootstrap::config(scope), read_config)
}

/// The last bootstrap of a device.
pub(in crate::sled) fn last_of(
    db: &Db,
    device: DeviceKey,
) -> Result<Option<BootstrapRecord>, Fault> {
    load(db, &key::bootstrap::bootstrap(device), read_bootstrap)
}
