//! The vocabulary of passive reporting: whether it is enabled, and the answers of the device to
//! reads.

use protocol::coap::code::Code;
use protocol::lwm2m::value::Value;

use super::{DeviceFixture, HOME, logged, observing, published, sent};
use crate::setting::SettingState;

use super::rendering::Lines;

/// The objects of a device that has something to report.
pub(in crate::device::tests) const REPORTING: &str = "</1/0>,</3/0>,</6/0>,</7/0>";

impl DeviceFixture {
    /// A device that never sent anything, whose customer enabled passive reporting.
    pub(in crate::device::tests) fn reporting() -> Self {
        let mut fixture = Self::new();
        fixture.switch_reporting(SettingState::Enabled);
        fixture
    }

    /// The customer enables or disables passive reporting.
    pub(in crate::device::tests) fn switch_reporting(&mut self, state: SettingState) {
        self.change_policy(|policy| policy.passive_reporting = state);
    }

    /// The device registers with these objects.
    pub(in crate::device::tests) fn offer(&mut self, objects: &str) -> Lines {
        self.register_with(&["lwm2m=1.1", "lt=86400", "b=U"], objects)
    }

    /// The device answers with the values of an object.
    pub(in crate::device::tests) fn answer_values(
        &mut self,
        path: &str,
        values: &[(&str, i64)],
    ) -> Lines {
        let values = values
            .iter()
            .map(|(at, value)| (*at, Value::Integer(*value)));
        let values: Vec<_> = values.collect();
        let answer = observing::tlv(self.piggybacked(Code::CONTENT), path, &values);
        self.receives(HOME, &answer)
    }

    /// The device answers each read with 4.04. Returns the objects that are read.
    pub(in crate::device::tests) fn requested_objects(&mut self, effects: Lines) -> Vec<String> {
        let mut paths = Vec::new();
        let mut effects = effects;
        while effects.last().is_some_and(|line| line.contains("CON GET")) {
            let path = self
                .last_request()
                .uri_path()
                .map(|segment| format!("/{segment}"));
            paths.push(path.collect());
            effects = self.answer(Code::NOT_FOUND, "");
        }
        paths
    }
}

/// An object is read.
pub(in crate::device::tests) fn reads(path: &str, message: &str) -> Lines {
    sent(&format!("CON GET {path} accept 11542 {message}"))
}

/// The values of a read are published.
pub(in crate::device::tests) fn reported(values: &str) -> Lines {
    published(&format!("{values} for reported"))
}

/// The failure to read an object is logged.
pub(in crate::device::tests) fn unread(path: &str, why: &str) -> Lines {
    logged(&format!(
        "LwM2M[PassiveReportingFailed] Error: Passive reporting could not read {path}: {why}"
    ))
}
