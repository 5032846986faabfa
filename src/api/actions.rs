//! Action requests: create, look, list, take back (seed 4.2, 4.4 to 4.7).

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::action::parse::{Part, RequestFault};
use engine::action::{Action, Lwm2mRequest, Mode, NewAction, Operation, Protocol, Request, Status};
use engine::device::queue::Cancelled;
use engine::ids::{ActionId, DeviceId, DeviceKey};
use engine::limits::{ACTION_RETENTION_MS, SEND_ATTEMPTS_MAX};
use engine::query::ActionFilter;

use super::Api;
use super::access::Caller;
use super::action::ActionBody;
use super::body::{Json, Query};
use super::call::Call;
use super::error::Failure;
use super::fields::{Fields, Wrong};
use super::page::{PageBody, wanted};
use super::segment::At;
use super::words::Word;

/// The longest expiry a request may ask for: later, its record would be gone.
const EXPIRY_S_MAX: u32 = (ACTION_RETENTION_MS / 1_000) as u32;

/// The only order in which requests are listed.
const NEWEST_FIRST: &str = "-created";

/// A request that was accepted.
#[derive(Serialize)]
struct AcceptedBody {
    id: String,
    message: &'static str,
}

/// A request that was taken back.
#[derive(Serialize)]
struct CancelledBody {
    id: String,
    status: &'static str,
}

/// POST: asks a device to do something.
pub(super) async fn create(
    call: Call,
    caller: Caller,
    At(device): At<DeviceId>,
    At(protocol): At<Protocol>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let action = new_action(call, protocol, fields)?;
    let device = DeviceKey::of(&caller.customer, &device);
    let accepted = api.devices.submit(device, action).await??;
    let id = accepted.id.to_string();
    let body = AcceptedBody {
        id,
        message: "The action request was scheduled.",
    };
    Ok(HttpResponse::Accepted().json(body))
}

/// GET one.
pub(super) async fn show(
    caller: Caller,
    At(request): At<ActionId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let action = owned(&api, &caller, request).await?;
    Ok(HttpResponse::Ok().json(ActionBody::of(&action)))
}

/// GET: lists the requests of the caller, newest first.
pub(super) async fn list(
    caller: Caller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let wanted = wanted(&mut fields);
    let filter = filter(caller, fields)?;
    let page = api.store.actions(filter, wanted).await?;
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, |action| ActionBody::of(&action))))
}

/// DELETE one: takes a request back that was not sent.
pub(super) async fn cancel(
    caller: Caller,
    At(request): At<ActionId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let action = owned(&api, &caller, request).await?;
    let cancelled = api.devices.cancel(action.device, action.id).await??;
    Ok(HttpResponse::Ok().json(CancelledBody::of(cancelled)))
}

/// DELETE by device: takes back every request of a device that was not sent.
pub(super) async fn cancel_all(
    caller: Caller,
    At(device): At<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let device = DeviceKey::of(&caller.customer, &device);
    let cancelled = api.devices.cancel_all(device).await?;
    let body: Vec<_> = cancelled.into_iter().map(CancelledBody::of).collect();
    Ok(HttpResponse::Ok().json(body))
}

/// A request of the caller; another customer's does not exist for it.
async fn owned(api: &Api, caller: &Caller, request: ActionId) -> Result<Action, Failure> {
    let action = api.store.action(request).await?;
    let action = action.filter(|action| action.customer == caller.customer);
    action.ok_or_else(|| Failure::unknown("request"))
}

fn new_action(call: Call, protocol: Protocol, mut fields: Fields) -> Result<NewAction, Failure> {
    match protocol {
        Protocol::Lwm2m => {}
        Protocol::Udp | Protocol::Coap => return Err(Failure::protocol_not_supported_yet()),
    }
    let request = lwm2m_request(&mut fields);
    let mode = fields
        .optional("requestMode", Mode::read)
        .unwrap_or(Mode::SendNow);
    let attempts = fields
        .number("sendAttempts", 1..=u32::from(SEND_ATTEMPTS_MAX))
        .unwrap_or(1);
    let expires_in_s = fields.number("expiresIn", 1..=EXPIRY_S_MAX);
    fields.finish(request.map(|request| NewAction {
        request: Request::Lwm2m(request),
        mode,
        attempts_permitted: u8::try_from(attempts).unwrap_or(SEND_ATTEMPTS_MAX),
        expires_in_s,
        trace: call.trace,
    }))
}

fn lwm2m_request(fields: &mut Fields) -> Option<Lwm2mRequest> {
    let text = |text: &str| Ok::<_, String>(text.to_owned());
    let operation = fields.required("action", operation);
    let address = fields.required("resourceAddress", text);
    let data = fields.optional("data", text);
    match Lwm2mRequest::parse(operation?, &address?, data.as_deref()) {
        Ok(request) => Some(request),
        Err(faults) => {
            for fault in faults {
                fields.fault(field_of(fault), wrong(fault));
            }
            None
        }
    }
}

fn operation(text: &str) -> Result<Operation, Wrong> {
    match text {
        "observe-start" | "observe-end" => Err(Wrong::not_supported_yet(format!(
            "{text} is not supported yet"
        ))),
        text => Operation::read(text).map_err(Wrong::from),
    }
}

fn field_of(fault: RequestFault) -> &'static str {
    match fault.part() {
        Part::Address => "resourceAddress",
        Part::Data => "data",
    }
}

fn wrong(fault: RequestFault) -> Wrong {
    match fault {
        RequestFault::ObjectRead => Wrong::not_supported_yet(fault),
        RequestFault::Address(_)
        | RequestFault::NoResource
        | RequestFault::ResourceInstance
        | RequestFault::DataMissing
        | RequestFault::DataUnwanted
        | RequestFault::DataTooLong { .. } => Wrong::from(fault),
    }
}

fn filter(caller: Caller, mut fields: Fields) -> Result<ActionFilter, Failure> {
    let device = fields.optional("deviceId", DeviceId::parse);
    let protocol = fields.optional("protocol", Protocol::read);
    let status = fields.optional("status", Status::read);
    fields.optional("sort", |text| match text {
        NEWEST_FIRST => Ok(()),
        _ => Err(Wrong::not_supported_yet("only -created is supported yet")),
    });
    fields.finish(Some(ActionFilter {
        device: device.map(|device| DeviceKey::of(&caller.customer, &device)),
        customer: caller.customer,
        protocol,
        status,
    }))
}

impl CancelledBody {
    fn of(cancelled: Cancelled) -> Self {
        Self {
            id: cancelled.id.to_string(),
            status: Status::Cancelled.word(),
        }
    }
}
