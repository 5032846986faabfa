//! How does the firmware object of the device proceed? (LwM2M Core 1.1 appendix E.6)
//!
//! ```text
//!            URI written           downloaded            executed
//!   0 idle -----------> 1 downloads ----------> 2 has it --------> 3 installs
//!     ^                      |                     ^   |               |
//!     +--- failed, empty URI +                     |   +- empty URI --> 0
//!     |                                            +--- no power ------+
//!     +-------------------------- installed, or failed ----------------+
//! ```
//!
//! A download does not survive the loss of power, an image does.

use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use super::event::{DeviceOutput, Operation};
use super::resource::{
    Consequence, FIRMWARE_PACKAGE, FIRMWARE_RESULT, FIRMWARE_STATE, FIRMWARE_UPDATE, FIRMWARE_URI,
};
use super::{CONSEQUENCE_AFTER_MS, SimulatedDevice};

const IDLE: i64 = 0;
const DOWNLOADS: i64 = 1;
const HAS_IMAGE: i64 = 2;
const INSTALLS: i64 = 3;

/// The result of a download whose connection was lost.
const CONNECTION_LOST: u8 = 4;

impl SimulatedDevice {
    /// Changes the results of the next downloads and installations, as `/5/0/5` has them; 0 stands
    /// for a successful download.
    pub fn update_with_results(&mut self, download: u8, install: u8) {
        let results = [
            (FIRMWARE_PACKAGE, Consequence::Receive { result: download }),
            (FIRMWARE_URI, Consequence::Download { result: download }),
            (FIRMWARE_UPDATE, Consequence::Install { result: install }),
        ];
        for (path, consequence) in results {
            if let Some(resource) = self.resources.find_mut(path) {
                resource.consequence = consequence;
            }
        }
    }

    /// Why the state of the object does not permit an operation.
    pub(super) fn refusal_by_update(&self, path: Path, operation: Operation) -> Option<Code> {
        let state = self.firmware_state()?;
        let is_permitted = match (path, operation) {
            (FIRMWARE_PACKAGE | FIRMWARE_URI, Operation::Write) => state != INSTALLS,
            (FIRMWARE_UPDATE, Operation::Execute) => state == HAS_IMAGE,
            (_, _) => true,
        };
        (!is_permitted).then_some(Code::METHOD_NOT_ALLOWED)
    }

    /// Begins a download or an installation, or has a whole image. An empty URI and an image of one
    /// zero end an update.
    pub(super) fn begin_update_step(&mut self, answered_at_ms: i64, step: Consequence) {
        let installs = matches!(step, Consequence::Install { .. });
        let (path, none) = match matches!(step, Consequence::Receive { .. }) {
            true => (FIRMWARE_PACKAGE, Value::Opaque(vec![0])),
            false => (FIRMWARE_URI, Value::String(String::new())),
        };
        if !installs && self.resources.value(path) == Some(&none) {
            self.session.update = None;
            return self.firmware_is(IDLE, 0);
        }
        let state = match installs {
            true => INSTALLS,
            false => DOWNLOADS,
        };
        self.firmware_is(state, 0);
        let ends_at_ms = answered_at_ms.saturating_add(CONSEQUENCE_AFTER_MS);
        self.session.update = Some((ends_at_ms, step));
    }

    /// Ends a download or an installation that is due.
    pub(super) fn proceed_with_update(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) {
        let is_due = |&mut (due_at_ms, _): &mut (i64, Consequence)| due_at_ms <= now_ms;
        match self.session.update.take_if(is_due) {
            Some((_, Consequence::Download { result } | Consequence::Receive { result })) => {
                let state = match result {
                    0 => HAS_IMAGE,
                    _ => IDLE,
                };
                self.firmware_is(state, result);
            }
            Some((_, Consequence::Install { result })) => {
                self.firmware_is(IDLE, result);
                self.reboot(now_ms, out);
            }
            Some(_) | None => {}
        }
    }

    /// The power is cut.
    pub(super) fn interrupt_update(&mut self) {
        match self.firmware_state() {
            Some(DOWNLOADS) => self.firmware_is(IDLE, CONNECTION_LOST),
            Some(INSTALLS) => self.firmware_is(HAS_IMAGE, 0),
            Some(_) | None => {}
        }
    }

    fn firmware_state(&self) -> Option<i64> {
        match self.resources.value(FIRMWARE_STATE) {
            Some(Value::Integer(state)) => Some(*state),
            Some(_) | None => None,
        }
    }

    fn firmware_is(&mut self, state: i64, result: u8) {
        let result = Value::Integer(result.into());
        self.resources
            .replace(FIRMWARE_STATE, Value::Integer(state));
        self.resources.replace(FIRMWARE_RESULT, result);
    }
}
