//! Which handlers create action requests, for one device or several? (seed 4.2, 4.3)

use std::collections::VecDeque;
use std::future::Future;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::action::{NewAction, Protocol};
use engine::ids::{ActionId, DeviceId, DeviceKey};

use super::asked::Desk;
use crate::api::Api;
use crate::api::access::Caller;
use crate::api::body::Json;
use crate::api::call::Call;
use crate::api::error::Failure;
use crate::api::once::{self, Known, Named};
use crate::api::segment::At;
use crate::api::words::Word;

/// Devices of a bulk call that are processed concurrently: enough that their requests share groups
/// of commits, few enough that one call does not fill the mailboxes of the arbiters.
const ASKED_AT_ONCE: usize = 32;

/// The protocol of a route.
pub(in crate::api) trait Carrier: 'static {
    /// Which it is.
    const PROTOCOL: Protocol;
}

/// Datagrams.
pub(in crate::api) struct Udp;

impl Carrier for Udp {
    const PROTOCOL: Protocol = Protocol::Udp;
}

/// CoAP requests.
pub(in crate::api) struct Coap;

impl Carrier for Coap {
    const PROTOCOL: Protocol = Protocol::Coap;
}

/// Device management operations.
pub(in crate::api) struct Lwm2m;

impl Carrier for Lwm2m {
    const PROTOCOL: Protocol = Protocol::Lwm2m;
}

/// The response for one device.
#[derive(Serialize)]
pub(in crate::api) struct AcceptedBody {
    id: String,
    message: &'static str,
}

/// The response for several devices.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct ManyBody {
    accepted_requests: Vec<AcceptedRequestBody>,
    rejected_devices: Vec<String>,
    message: String,
    rejected_reasons: Vec<RejectedReasonBody>,
}

/// An accepted device with its request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptedRequestBody {
    device_id: String,
    request_id: String,
}

/// Why a device was rejected.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RejectedReasonBody {
    device_id: String,
    code: &'static str,
    message: String,
}

/// POST for one device.
pub(in crate::api) async fn create<P: Carrier>(
    call: Call,
    caller: Caller,
    At(device): At<DeviceId>,
    named: Named,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let place = ["one", P::PROTOCOL.word(), device.as_str()];
    let identity = named.read(&place, &mut fields);
    let new = desk::<P>(&api).asked_of_one(call, fields)?;
    let device = DeviceKey::of(&caller.customer, &device);
    let devices = api.clone();
    let ask = move |known: Known| asking(&devices, &known, device, &new);
    let id = once::call(&api, &caller, identity, ask).await?;
    Ok(HttpResponse::Accepted().json(AcceptedBody::of(id)))
}

/// POST for several devices: each is accepted or rejected on its own.
pub(in crate::api) async fn create_many<P: Carrier>(
    call: Call,
    caller: Caller,
    named: Named,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let identity = named.read(&["many", P::PROTOCOL.word()], &mut fields);
    let (new, devices) = desk::<P>(&api).asked_of_many(call, fields)?;
    let asking = Many {
        api: api.clone(),
        caller: caller.clone(),
        new,
        devices,
    };
    let ask = move |known: Known| asking.ask_all(known);
    let body = once::call(&api, &caller, identity, ask).await?;
    Ok(HttpResponse::Accepted().json(body))
}

fn desk<P: Carrier>(api: &Api) -> Desk {
    Desk {
        protocol: P::PROTOCOL,
        udp_payload_bytes_max: api.udp_payload_bytes_max,
        devices_max: api.bulk_devices_max,
    }
}

/// A bulk call.
struct Many {
    api: web::Data<Api>,
    caller: Caller,
    new: NewAction,
    devices: Vec<DeviceId>,
}

impl Many {
    async fn ask_all(self, known: Known) -> Result<ManyBody, Failure> {
        let mut answers = Vec::with_capacity(self.devices.len());
        let mut under_way = VecDeque::with_capacity(ASKED_AT_ONCE);
        for device in &self.devices {
            if under_way.len() >= ASKED_AT_ONCE
                && let Some(first) = under_way.pop_front()
            {
                answers.push(first.await);
            }
            let key = DeviceKey::of(&self.caller.customer, device);
            under_way.push_back(asking(&self.api, &known, key, &self.new));
        }
        for asked in under_way {
            answers.push(asked.await);
        }
        if answers.iter().all(is_too_early)
            && let Some(Err(failure)) = answers.pop()
        {
            return Err(failure);
        }
        Ok(ManyBody::of(self.devices.into_iter().zip(answers)))
    }
}

/// Submits the request to a device, unless an earlier call with the same idempotency key did; the
/// result comes later.
fn asking(
    api: &Api,
    known: &Known,
    device: DeviceKey,
    new: &NewAction,
) -> impl Future<Output = Result<ActionId, Failure>> + use<> {
    let promised = known.promised(device);
    let asked = promised.is_none().then(|| {
        let once = known.once;
        api.devices.submit(
            device,
            NewAction {
                once,
                ..new.clone()
            },
        )
    });
    async move {
        match (promised, asked) {
            (Some(id), _) => Ok(id),
            (None, Some(asked)) => Ok(asked.await??.id),
            (None, None) => unreachable!("a device without a promise is asked"),
        }
    }
}

fn is_too_early(answer: &Result<ActionId, Failure>) -> bool {
    answer.as_ref().is_err_and(Failure::is_temporary)
}

impl AcceptedBody {
    pub(in crate::api) fn of(id: ActionId) -> Self {
        Self {
            id: id.to_string(),
            message: "The action request was scheduled.",
        }
    }
}

impl ManyBody {
    pub(in crate::api) fn of(
        answers: impl Iterator<Item = (DeviceId, Result<ActionId, Failure>)>,
    ) -> Self {
        let (mut accepted_requests, mut rejected_reasons) = (Vec::new(), Vec::new());
        for (device, answer) in answers {
            let device_id = device.to_string();
            match answer {
                Ok(id) => accepted_requests.push(AcceptedRequestBody {
                    device_id,
                    request_id: id.to_string(),
                }),
                Err(failure) => rejected_reasons.push(RejectedReasonBody::of(device_id, failure)),
            }
        }
        let rejected = rejected_reasons.iter();
        let rejected_devices: Vec<_> = rejected.map(|it| it.device_id.clone()).collect();
        let (scheduled, refused) = (accepted_requests.len(), rejected_devices.len());
        Self {
            accepted_requests,
            rejected_devices,
            message: format!(
                "Action requests scheduled: {scheduled}; devices rejected: {refused}."
            ),
            rejected_reasons,
        }
    }
}

impl RejectedReasonBody {
    fn of(device_id: String, failure: Failure) -> Self {
        let fault = failure.into_faults().into_iter().next();
        let fault = fault.expect("a failure says what is wrong");
        Self {
            device_id,
            code: fault.code,
            message: fault.message,
        }
    }
}
