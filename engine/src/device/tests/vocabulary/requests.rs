//! The vocabulary of requests to the device.

use protocol::lwm2m::attributes::Attributes;

use crate::action::{Lwm2mRequest, Mode, NewAction, Operation, Request};
use crate::idempotency::IdempotentCall;
use crate::ids::TraceId;

pub(in crate::device::tests) fn read(path: &str) -> NewAction {
    request(Operation::Read, path, None)
}

pub(in crate::device::tests) fn write(path: &str, data: &str) -> NewAction {
    request(Operation::Write, path, Some(data))
}

pub(in crate::device::tests) fn execute(path: &str) -> NewAction {
    request(Operation::Execute, path, None)
}

pub(in crate::device::tests) fn execute_with(path: &str, arguments: &str) -> NewAction {
    request(Operation::Execute, path, Some(arguments))
}

pub(in crate::device::tests) fn discover(path: &str) -> NewAction {
    request(Operation::Discover, path, None)
}

/// Writes attributes, given as a query.
pub(in crate::device::tests) fn write_attributes(path: &str, query: &str) -> NewAction {
    let attributes = Attributes::from_query(query).unwrap();
    lwm2m(Lwm2mRequest::WriteAttributes(
        path.parse().unwrap(),
        attributes,
    ))
}

/// An operation to be performed now, with one attempt.
pub(super) fn lwm2m(request: Lwm2mRequest) -> NewAction {
    action(Request::Lwm2m(request))
}

/// A request to be sent now, with one attempt.
pub(super) fn request(operation: Operation, path: &str, data: Option<&str>) -> NewAction {
    lwm2m(Lwm2mRequest::parse(operation, path, data).unwrap())
}

pub(super) fn action(request: Request) -> NewAction {
    NewAction {
        request,
        mode: Mode::SendNow,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([9; 16]),
        idempotent_call: None,
    }
}

impl NewAction {
    /// The same request, to be sent at the next uplink.
    pub(in crate::device::tests) fn when_active(self) -> Self {
        let mode = Mode::SendWhenActive;
        Self { mode, ..self }
    }

    /// The same request, made by an idempotent call.
    pub(in crate::device::tests) fn once(self, once: IdempotentCall) -> Self {
        let once = Some(once);
        Self {
            idempotent_call: once,
            ..self
        }
    }

    /// The same request with this many attempts.
    pub(in crate::device::tests) fn attempts(self, attempts_permitted: u8) -> Self {
        Self {
            attempts_permitted,
            ..self
        }
    }

    /// The same request, to be sent this many milliseconds after the start at the earliest.
    pub(in crate::device::tests) fn not_before(self, after_start: i64) -> Self {
        Self {
            not_before: Some(super::START.plus_ms(after_start)),
            ..self
        }
    }

    /// The same request, which expires after this many seconds.
    pub(in crate::device::tests) fn expiring_in_s(self, expires_in_s: u32) -> Self {
        let expires_in_s = Some(expires_in_s);
        Self {
            expires_in_s,
            ..self
        }
    }
}
