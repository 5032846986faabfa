//! What a customer may switch on and off.

use crate::ids::CustomerId;

/// The settings there are.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SettingName {
    /// Reads the objects of a device when it registers or updates (seed 1.3).
    Lwm2mPassiveReporting,
}

impl SettingName {
    /// Every setting, in the order a list shows them.
    pub const ALL: [Self; 1] = [Self::Lwm2mPassiveReporting];
}

/// Whether a setting is in force.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SettingState {
    /// In force.
    Enabled,
    /// Not in force; every setting starts so (seed 1.2).
    #[default]
    Disabled,
}

/// One setting of one customer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting {
    /// Whose it is.
    pub customer: CustomerId,
    /// Which it is.
    pub name: SettingName,
    /// Whether it is in force.
    pub state: SettingState,
}
