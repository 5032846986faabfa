//! The settings that a customer may enable and disable.

use crate::ids::CustomerId;

/// The names of the settings.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SettingName {
    /// Reads the objects of a device when it registers or updates (seed 1.3).
    Lwm2mPassiveReporting,
}

impl SettingName {
    /// Every setting, in the order a list shows them.
    pub const ALL: [Self; 1] = [Self::Lwm2mPassiveReporting];
}

/// Whether a setting is enabled.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SettingState {
    /// Enabled.
    Enabled,
    /// Disabled; the default of every setting (seed 1.2).
    #[default]
    Disabled,
}

/// One setting of one customer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting {
    /// Its customer.
    pub customer: CustomerId,
    /// Its name.
    pub name: SettingName,
    /// Its state.
    pub state: SettingState,
}
