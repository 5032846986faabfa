//! Which handlers create action requests, for one device or several? (seed 4.2, 4.3)

use std::collections::VecDeque;
use std::future::Future;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::action::{NewAction, Protocol};
use engine::ids::{ActionId, CustomerId, DeviceId, DeviceKey};

use super::request_body::{ActionParser, BulkDevices};
use crate::api::Api;
use crate::api::access::AuthenticatedCaller;
use crate::api::body::Json;
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::fields::Fields;
use crate::api::idempotency::{self, IdempotencyKeyHeader, KnownCall};
use crate::api::jobs;
use crate::api::segment::PathSegment;
use crate::api::words::Word;

/// Devices of a bulk call that are processed concurrently: enough that their requests share groups
/// of commits, few enough that one call does not fill the mailboxes of the arbiters.
const CONCURRENT_MAX: usize = 32;

/// The protocol of a route.
pub(in crate::api) trait ActionProtocol: 'static {
    /// Which it is.
    const PROTOCOL: Protocol;
}

/// Datagrams.
pub(in crate::api) struct Udp;

impl ActionProtocol for Udp {
    const PROTOCOL: Protocol = Protocol::Udp;
}

/// CoAP requests.
pub(in crate::api) struct Coap;

impl ActionProtocol for Coap {
    const PROTOCOL: Protocol = Protocol::Coap;
}

/// Device management operations.
pub(in crate::api) struct Lwm2m;

impl ActionProtocol for Lwm2m {
    const PROTOCOL: Protocol = Protocol::Lwm2m;
}

/// The response for one device.
#[derive(Clone, Serialize)]
pub(in crate::api) struct AcceptedBody {
    id: String,
    message: &'static str,
}

/// The response for several devices.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct BulkResultBody {
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
pub(in crate::api) async fn create<P: ActionProtocol>(
    call: Call,
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    named: IdempotencyKeyHeader,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let requested = RequestedAction {
        customer: caller.customer,
        device,
        protocol: P::PROTOCOL,
        named,
        fields,
    };
    let id = create_one(&api, call, requested).await?;
    Ok(HttpResponse::Accepted().json(AcceptedBody::of(id)))
}

/// A request for one device as its caller gives it.
pub(in crate::api) struct RequestedAction {
    /// The customer.
    pub(in crate::api) customer: CustomerId,
    /// The device.
    pub(in crate::api) device: DeviceId,
    /// The protocol.
    pub(in crate::api) protocol: Protocol,
    /// The idempotency key.
    pub(in crate::api) named: IdempotencyKeyHeader,
    /// The body.
    pub(in crate::api) fields: Fields,
}

/// Creates a request for one device, unless an earlier call with the same idempotency key did.
pub(in crate::api) async fn create_one(
    api: &web::Data<Api>,
    call: Call,
    requested: RequestedAction,
) -> Result<ActionId, ApiError> {
    let RequestedAction {
        customer,
        device,
        protocol,
        named,
        mut fields,
    } = requested;
    let place = ["one", protocol.word(), device.as_str()];
    let identity = named.read(&place, &mut fields);
    let new = ActionParser::of(api, protocol).parse_one(call, fields)?;
    let device = DeviceKey::of(&customer, &device);
    let devices = api.clone();
    let act = move |known: KnownCall| submit(&devices, &known, device, &new);
    idempotency::call(api, &customer, identity, act).await
}

/// POST for several devices: each is accepted or rejected on its own. Devices that a filter selects
/// are those of a job.
pub(in crate::api) async fn create_many<P: ActionProtocol>(
    call: Call,
    caller: AuthenticatedCaller,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["many", P::PROTOCOL.word()], &mut fields);
    let (new, devices) =
        ActionParser::of(&api, P::PROTOCOL).parse_many(call, caller.customer.clone(), fields)?;
    let devices = match devices {
        BulkDevices::Named(devices) => devices,
        BulkDevices::DryRun(filter) => return jobs::dry_run(&api, filter).await,
        BulkDevices::Selected(filter) => {
            return jobs::create(&api, &caller, identity, new, filter).await;
        }
    };
    let bulk = BulkRequest {
        api: api.clone(),
        caller: caller.clone(),
        new,
        devices,
    };
    let act = move |known: KnownCall| bulk.submit_all(known);
    let body = idempotency::call(&api, &caller.customer, identity, act).await?;
    Ok(HttpResponse::Accepted().json(body))
}

/// A bulk call.
struct BulkRequest {
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    new: NewAction,
    devices: Vec<DeviceId>,
}

impl BulkRequest {
    async fn submit_all(self, known: KnownCall) -> Result<BulkResultBody, ApiError> {
        let mut answers = Vec::with_capacity(self.devices.len());
        let mut under_way = VecDeque::with_capacity(CONCURRENT_MAX);
        for device in &self.devices {
            if under_way.len() >= CONCURRENT_MAX
                && let Some(first) = under_way.pop_front()
            {
                answers.push(first.await);
            }
            let key = DeviceKey::of(&self.caller.customer, device);
            under_way.push_back(submit(&self.api, &known, key, &self.new));
        }
        for answer in under_way {
            answers.push(answer.await);
        }
        if answers.iter().all(is_too_early)
            && let Some(Err(failure)) = answers.pop()
        {
            return Err(failure);
        }
        Ok(BulkResultBody::of(self.devices.into_iter().zip(answers)))
    }
}

/// Submits the request to a device, unless an earlier call with the same idempotency key did. The
/// returned future resolves to the request's id.
fn submit(
    api: &Api,
    known: &KnownCall,
    device: DeviceKey,
    new: &NewAction,
) -> impl Future<Output = Result<ActionId, ApiError>> + use<> {
    let known_id = known.record_of(device);
    let submission = known_id.is_none().then(|| {
        let once = known.once;
        api.devices.submit(
            device,
            NewAction {
                idempotent_call: once,
                ..new.clone()
            },
        )
    });
    async move {
        match (known_id, submission) {
            (Some(id), _) => Ok(id),
            (None, Some(submission)) => Ok(submission.await??.id),
            (None, None) => unreachable!("a request without a record is submitted"),
        }
    }
}

fn is_too_early(answer: &Result<ActionId, ApiError>) -> bool {
    answer.as_ref().is_err_and(ApiError::is_temporary)
}

impl AcceptedBody {
    pub(in crate::api) fn of(id: ActionId) -> Self {
        Self {
            id: id.to_string(),
            message: "The action request was scheduled.",
        }
    }
}

impl BulkResultBody {
    pub(in crate::api) fn of(
        answers: impl Iterator<Item = (DeviceId, Result<ActionId, ApiError>)>,
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
    fn of(device_id: String, failure: ApiError) -> Self {
        let fault = failure.into_fault();
        Self {
            device_id,
            code: fault.code,
            message: fault.message,
        }
    }
}
