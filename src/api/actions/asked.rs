//! What does a caller ask of devices? From a body to requests, with every fault at once.

use std::collections::HashSet;

use engine::action::parse::lwm2m::{Data, Draft, Part, RequestFault};
use engine::action::{Lwm2mRequest, Mode, NewAction, Operation, Protocol, Request};
use engine::ids::DeviceId;
use engine::limits::{ACTION_RETENTION_MS, SEND_ATTEMPTS_MAX};

use crate::api::call::Call;
use crate::api::error::Failure;
use crate::api::fields::{Fields, Wrong};
use crate::api::words::Word;

/// The longest expiry a request may ask for: later, its record would be gone.
pub(super) const EXPIRY_S_MAX: u32 = (ACTION_RETENTION_MS / 1_000) as u32;

/// What is asked of one device.
pub(super) fn asked_of_one(
    call: Call,
    protocol: Protocol,
    mut fields: Fields,
) -> Result<NewAction, Failure> {
    expect_supported(protocol)?;
    let new = new_action(call, &mut fields);
    fields.finish(new)
}

/// What is asked of several devices, and of which.
pub(super) fn asked_of_many(
    call: Call,
    protocol: Protocol,
    mut fields: Fields,
    devices_max: u32,
) -> Result<(NewAction, Vec<DeviceId>), Failure> {
    expect_supported(protocol)?;
    let new = new_action(call, &mut fields);
    let devices = device_ids(&mut fields, devices_max);
    fields.finish(new.zip(devices))
}

fn expect_supported(protocol: Protocol) -> Result<(), Failure> {
    match protocol {
        Protocol::Lwm2m => Ok(()),
        Protocol::Udp | Protocol::Coap => Err(Failure::protocol_not_supported_yet()),
    }
}

fn new_action(call: Call, fields: &mut Fields) -> Option<NewAction> {
    let request = lwm2m_request(fields);
    let mode = fields.optional("requestMode", Mode::read);
    let attempts = fields.number("sendAttempts", 1..=u32::from(SEND_ATTEMPTS_MAX));
    let expires_in_s = fields.number("expiresIn", 1..=EXPIRY_S_MAX);
    Some(NewAction {
        request: Request::Lwm2m(request?),
        mode: mode.unwrap_or(Mode::SendNow),
        attempts_permitted: u8::try_from(attempts.unwrap_or(1)).unwrap_or(SEND_ATTEMPTS_MAX),
        expires_in_s,
        trace: call.trace,
        once: None,
    })
}

fn lwm2m_request(fields: &mut Fields) -> Option<Lwm2mRequest> {
    let text = |text: &str| Ok::<_, String>(text.to_owned());
    let operation = fields.required("action", Operation::read);
    let address = fields.required("resourceAddress", text);
    let has_data = fields.has("data");
    let data = fields.optional("data", text);
    let draft = Draft {
        operation,
        address: address.as_deref(),
        data: match &data {
            Some(data) => Data::Text(data),
            None if has_data => Data::Unreadable,
            None => Data::Nothing,
        },
    };
    draft.read().unwrap_or_else(|faults| {
        for fault in faults {
            fields.fault(field_of(fault), wrong(fault));
        }
        None
    })
}

fn field_of(fault: RequestFault) -> &'static str {
    match fault.part() {
        Part::Address => "resourceAddress",
        Part::Data => "data",
    }
}

fn wrong(fault: RequestFault) -> Wrong {
    match fault {
        RequestFault::DataMissing => Wrong::required(fault),
        RequestFault::Address(_)
        | RequestFault::NoResource
        | RequestFault::ResourceInstance
        | RequestFault::DataUnwanted
        | RequestFault::DataTooLong { .. } => fault.into(),
    }
}

fn device_ids(fields: &mut Fields, max: u32) -> Option<Vec<DeviceId>> {
    const FIELD: &str = "deviceIds";
    let texts = fields.required_texts(FIELD)?;
    let fits = u32::try_from(texts.len()).is_ok_and(|count| (1..=max).contains(&count));
    if !fits {
        let why = format!("must have 1 to {max} items");
        fields.fault(FIELD, Wrong::out_of_range(why));
        return None;
    }
    let mut known = HashSet::new();
    let mut devices = Vec::with_capacity(texts.len());
    for (text, number) in texts.iter().zip(1..) {
        match DeviceId::parse(text) {
            Err(why) => fields.fault(FIELD, format!("item {number} {why}")),
            Ok(_) if !known.insert(text) => fields.fault(
                FIELD,
                Wrong::repeated_item(format!("item {number} was given before")),
            ),
            Ok(device) => devices.push(device),
        }
    }
    (devices.len() == texts.len()).then_some(devices)
}
