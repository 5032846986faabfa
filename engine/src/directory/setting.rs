//! Decisions about the settings of a customer.

use crate::change::{Batch, Change, Expect, UniqueName};
use crate::directory::guarded;
use crate::setting::{Setting, SettingName, SettingState};

/// Enables or disables a setting.
pub fn change_setting(setting: Setting) -> Batch {
    let expects = vec![Expect::Taken(UniqueName::Customer(
        setting.customer.clone(),
    ))];
    guarded(expects, Change::PutSetting(setting))
}

/// The state of a setting; `changed` are those that the customer ever changed.
pub fn state_of(name: SettingName, changed: &[Setting]) -> SettingState {
    let found = changed.iter().find(|setting| setting.name == name);
    found.map(|setting| setting.state).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::CustomerId;

    #[test]
    fn a_setting_is_changed_while_its_customer_exists() {
        let setting = passive_reporting(SettingState::Enabled);
        let batch = Batch {
            expects: vec![Expect::Taken(UniqueName::Customer(
                setting.customer.clone(),
            ))],
            changes: vec![Change::PutSetting(setting.clone())],
            ..Batch::default()
        };
        assert_eq!(change_setting(setting), batch);
    }

    #[test]
    fn a_setting_is_disabled_by_default() {
        let name = SettingName::Lwm2mPassiveReporting;
        assert_eq!(state_of(name, &[]), SettingState::Disabled);
        let changed = [passive_reporting(SettingState::Enabled)];
        assert_eq!(state_of(name, &changed), SettingState::Enabled);
    }

    fn passive_reporting(state: SettingState) -> Setting {
        let customer = CustomerId::parse("acme").unwrap();
        Setting {
            customer,
            name: SettingName::Lwm2mPassiveReporting,
            state,
        }
    }
}
