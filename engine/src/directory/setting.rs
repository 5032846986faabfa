//! Decisions about what a customer switches on and off.

use crate::change::{Batch, Change, Expect, UniqueName};
use crate::directory::guarded;
use crate::setting::{Setting, SettingName, SettingState};

/// Puts a setting in force or out of it.
pub fn change_setting(setting: Setting) -> Batch {
    let expects = vec![Expect::Taken(UniqueName::Customer(
        setting.customer.clone(),
    ))];
    guarded(expects, Change::PutSetting(setting))
}

/// The state of a setting among those a customer has ever changed.
pub fn state_of(name: SettingName, changed: &[Setting]) -> SettingState {
    let found = changed.iter().find(|setting| setting.name == name);
    found.map(|setting| setting.state).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::CustomerId;

    #[test]
    fn a_setting_is_changed_while_its_customer_is_there() {
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
    fn a_setting_never_changed_is_not_in_force() {
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
