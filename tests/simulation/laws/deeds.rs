//! What devices did for the requests they received, and how often.

use harness::device::operation_log::{PerformedOperation, PerformedRequest};

use super::{LawChecker, Verdict, attempts};
use crate::disk::plain;
use crate::wire::AttemptKey;

impl LawChecker {
    /// A device performed an LwM2M operation.
    pub(crate) fn performed(
        &mut self,
        who: usize,
        boot: u32,
        performed: &PerformedOperation,
    ) -> Verdict {
        let attempt = AttemptKey::new(performed.message_id.0, performed.token.as_bytes());
        self.performed_once(who, boot, attempt, payload_performed(performed))
    }

    /// A device performed a plain request.
    pub(crate) fn obeyed(&mut self, who: usize, boot: u32, obeyed: &PerformedRequest) -> Verdict {
        let attempt = AttemptKey::new(obeyed.message_id.0, obeyed.token.as_bytes());
        let payload = given_and_answered(&obeyed.given, &obeyed.answered);
        self.performed_once(who, boot, attempt, payload)
    }

    fn performed_once(
        &mut self,
        who: usize,
        boot: u32,
        attempt: AttemptKey,
        payload: Vec<u8>,
    ) -> Verdict {
        attempts::a_device_performs_an_attempt_once(self, who, boot, attempt)?;
        let deeds = self.deeds.entry((who, attempt)).or_default();
        deeds.boot = boot;
        deeds.payloads.push(payload);
        Ok(())
    }
}

/// The payloads of a plain request and of its response, in one.
pub(super) fn given_and_answered(given: &[u8], answered: &[u8]) -> Vec<u8> {
    let length = u32::try_from(given.len()).expect("what is given is not that long");
    [&length.to_be_bytes(), given, answered].concat()
}

/// The value a device read or wrote, in the bytes of plain devices.
fn payload_performed(performed: &PerformedOperation) -> Vec<u8> {
    plain(performed.format, performed.path, &performed.payload)
}
