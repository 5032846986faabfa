//! The vocabulary of profile changes.

use super::DeviceFixture;
use crate::profile::Profile;

impl DeviceFixture {
    /// The customer changes the profile.
    pub(in crate::device::tests) fn amend(&mut self, change: impl FnOnce(&mut Profile)) {
        change(&mut self.saved.profile);
        self.device.adopt(&self.saved.profile);
    }
}
