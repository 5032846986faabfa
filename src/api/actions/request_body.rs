//! How is the body of an action request parsed? With every fault reported at once.

mod coap;
mod lwm2m;
mod udp;

use std::collections::HashSet;
use std::num::NonZeroU16;

use engine::action::parse::RawField;
use engine::action::{Mode, NewAction, Protocol, Request, WakeUp};
use engine::ids::{CustomerId, DeviceId};
use engine::limits::{ACTION_RETENTION_MS, SEND_ATTEMPTS_MAX};
use engine::moment::Timestamp;
use engine::query::devices::DeviceFilter;
use engine::schedule::{ScheduleContents, ScheduleTarget};

use crate::api::Api;
use crate::api::call::Call;
use crate::api::devices::filter::device_filter;
use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields, instant};
use crate::api::words::Word;

/// The longest expiry of a request: later, its record would be deleted.
pub(super) const EXPIRY_S_MAX: u32 = (ACTION_RETENTION_MS / 1_000) as u32;

/// The devices of a bulk call.
pub(super) enum BulkDevices {
    /// These.
    Named(Vec<DeviceId>),
    /// Those that a filter selects.
    Selected(DeviceFilter),
    /// Those that a filter selects; they are only counted.
    DryRun(DeviceFilter),
}

/// The parser of action requests over one protocol, with its limits.
#[derive(Clone, Copy, Debug)]
pub(in crate::api) struct ActionParser {
    /// The protocol.
    pub(super) protocol: Protocol,
    /// The maximum payload of a datagram.
    pub(super) udp_payload_bytes_max: usize,
    /// The maximum length of `data`, and of `payload` over CoAP, as they are written.
    pub(super) data_bytes_max: usize,
    /// The maximum number of devices in a bulk call.
    pub(super) devices_max: u32,
    /// The time of the call.
    pub(super) now: Timestamp,
    /// The expiry of a request that sets none of its own.
    pub(super) expiry_ms: i64,
}

impl ActionParser {
    /// The parser for a protocol, with the limits of the service.
    pub(in crate::api) fn of(api: &Api, protocol: Protocol) -> Self {
        Self {
            protocol,
            udp_payload_bytes_max: api.udp_payload_bytes_max,
            data_bytes_max: api.action_data_bytes_max,
            devices_max: api.bulk_devices_max,
            now: api.clock.now(),
            expiry_ms: api.action_expiry_ms,
        }
    }

    /// Parses a request for one device.
    pub(super) fn parse_one(self, call: Call, mut fields: Fields) -> Result<NewAction, ApiError> {
        let new = self.new_action(call, &mut fields);
        fields.finish(new)
    }

    /// Parses a request for several devices of a customer.
    pub(super) fn parse_many(
        self,
        call: Call,
        customer: CustomerId,
        mut fields: Fields,
    ) -> Result<(NewAction, BulkDevices), ApiError> {
        let new = self.new_action(call, &mut fields);
        let devices = self.bulk_devices(customer, &mut fields);
        fields.finish(new.zip(devices))
    }

    /// Parses the request of a schedule, which creates it at times of its own.
    pub(in crate::api) fn parse_scheduled(
        self,
        call: Call,
        customer: CustomerId,
        fields: &mut Fields,
    ) -> Option<ScheduleContents> {
        for name in ["notBefore", "dryRun"] {
            fields.refuse(name, "is not supported in a schedule");
        }
        let request = self.new_action(call, fields);
        let target = match self.bulk_devices(customer, fields)? {
            BulkDevices::Named(devices) => ScheduleTarget::Named(devices.into()),
            BulkDevices::Selected(filter) | BulkDevices::DryRun(filter) => {
                ScheduleTarget::Selected(Box::new(filter))
            }
        };
        let request = request?;
        Some(ScheduleContents { request, target })
    }

    /// Either `deviceIds` or a `filter`. A filter without conditions selects all devices.
    fn bulk_devices(self, customer: CustomerId, fields: &mut Fields) -> Option<BulkDevices> {
        if !fields.has("filter") {
            fields.refuse("dryRun", "is supported only with filter");
            return device_ids(fields, self.devices_max).map(BulkDevices::Named);
        }
        fields.refuse("deviceIds", "must not be given together with filter");
        let filter = fields.object("filter", |filter| device_filter(customer, filter))?;
        match fields.truth("dryRun") {
            Some(true) => Some(BulkDevices::DryRun(filter)),
            Some(false) | None => Some(BulkDevices::Selected(filter)),
        }
    }

    fn new_action(self, call: Call, fields: &mut Fields) -> Option<NewAction> {
        let request = self.request(fields);
        let mode = fields.optional("requestMode", Mode::read);
        let attempts = self.attempts(fields);
        let expires_in_s = fields.number("expiresIn", 1..=EXPIRY_S_MAX);
        let wake_up = fields.optional("wakeUp", WakeUp::read);
        if wake_up.is_some() {
            fields.refuse("notBefore", "is not supported together with wakeUp");
        }
        let not_before = self.not_before(fields, expires_in_s);
        Some(NewAction {
            request: request?,
            mode: mode.unwrap_or(Mode::SendNow),
            attempts_permitted: attempts,
            expires_in_s,
            not_before,
            wake_up,
            trace: call.trace,
            idempotent_call: None,
        })
    }

    /// The time before which the request must not be sent, which is before its expiry.
    fn not_before(self, fields: &mut Fields, expires_in_s: Option<u32>) -> Option<Timestamp> {
        const FIELD: &str = "notBefore";
        let not_before = fields.optional(FIELD, instant)?;
        let expiry_ms = expires_in_s.map_or(self.expiry_ms, |s| i64::from(s) * 1_000);
        let expires_at = self.now.plus_ms(expiry_ms);
        if not_before >= expires_at {
            let why = format!(
                "must be before the request expires, at {}",
                expires_at.iso()
            );
            fields.fault(FIELD, FieldFault::out_of_range(why));
        }
        Some(not_before)
    }

    fn request(self, fields: &mut Fields) -> Option<Request> {
        match self.protocol {
            Protocol::Udp => udp::request(fields, self.udp_payload_bytes_max).map(Request::Udp),
            Protocol::Coap => coap::request(fields, self.data_bytes_max).map(Request::Coap),
            Protocol::Lwm2m => lwm2m::request(fields, self.data_bytes_max).map(Request::Lwm2m),
        }
    }

    /// A datagram is sent once: UDP reports no failure, so there is nothing to repeat.
    fn attempts(self, fields: &mut Fields) -> u8 {
        const FIELD: &str = "sendAttempts";
        match self.protocol {
            Protocol::Udp => {
                fields.refuse(FIELD, "is not supported for UDP");
                1
            }
            Protocol::Coap | Protocol::Lwm2m => {
                let attempts = fields.number(FIELD, 1..=u32::from(SEND_ATTEMPTS_MAX));
                u8::try_from(attempts.unwrap_or(1)).unwrap_or(SEND_ATTEMPTS_MAX)
            }
        }
    }
}

/// The required port on the device.
fn port(fields: &mut Fields) -> Option<NonZeroU16> {
    let port = fields.required_number("port", 1..=u32::from(u16::MAX))?;
    u16::try_from(port).ok().and_then(NonZeroU16::new)
}

/// A required string.
fn text(fields: &mut Fields, name: &str) -> Option<String> {
    fields.required(name, |text| Ok::<_, String>(text.to_owned()))
}

/// An optional string, with its parser.
fn given<T>(
    fields: &mut Fields,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> RawField<T> {
    present(fields, name, |fields, name| fields.optional(name, read))
}

/// A field that may be missing, with its parser.
fn present<T>(
    fields: &mut Fields,
    name: &str,
    read: impl FnOnce(&mut Fields, &str) -> Option<T>,
) -> RawField<T> {
    if !fields.has(name) {
        return RawField::Nothing;
    }
    match read(fields, name) {
        Some(value) => RawField::Value(value),
        None => RawField::Unreadable,
    }
}

/// The required ids of devices.
pub(in crate::api) fn device_ids(fields: &mut Fields, max: u32) -> Option<Vec<DeviceId>> {
    const FIELD: &str = "deviceIds";
    let texts = fields.required_texts(FIELD, |texts| Ok::<_, String>(texts.to_vec()))?;
    let fits = u32::try_from(texts.len()).is_ok_and(|count| (1..=max).contains(&count));
    if !fits {
        let why = format!("must have 1 to {max} items");
        fields.fault(FIELD, FieldFault::out_of_range(why));
        return None;
    }
    let mut known = HashSet::new();
    let mut devices = Vec::with_capacity(texts.len());
    for (text, number) in texts.iter().zip(1..) {
        match DeviceId::parse(text) {
            Err(why) => fields.fault(FIELD, format!("item {number} {why}")),
            Ok(_) if !known.insert(text) => fields.fault(
                FIELD,
                FieldFault::repeated_item(format!("item {number} is a duplicate")),
            ),
            Ok(device) => devices.push(device),
        }
    }
    (devices.len() == texts.len()).then_some(devices)
}

#[cfg(test)]
mod tests;
