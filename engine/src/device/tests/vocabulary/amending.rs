//! What a customer says anew of the device on the bench.

use super::DeviceFixture;
use crate::profile::Profile;

impl DeviceFixture {
    /// The customer says who the device is from now on.
    pub(in crate::device::tests) fn amend(&mut self, change: impl FnOnce(&mut Profile)) {
        change(&mut self.kept.profile);
        self.device.adopt(&self.kept.profile);
    }
}
