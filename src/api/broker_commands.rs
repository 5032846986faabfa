//! How is a command of a customer answered that came from its MQTT broker? As the call of the REST
//! API that it stands for.

use actix_web::http::StatusCode;
use actix_web::{ResponseError as _, web};
use actors::delivery::CommandCall;
use engine::delivery::mqtt::CommandTopic;
use engine::delivery::mqtt::link::BrokerCommand;
use engine::ids::{CustomerId, TraceId};
use serde::Serialize;
use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::actions::creating::{AcceptedBody, RequestedAction, create_one};
use super::call::Call;
use super::error::{ApiError, ErrorBody};
use super::fields::Fields;
use super::idempotency::IdempotencyKeyHeader;
use super::rate_limit::RateExceeded;
use super::{Api, ApiState};

/// The answer to a command.
#[derive(Serialize)]
struct CommandAnswerBody<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status that the call would have.
    status: u16,
    body: CallBody<'a>,
}

/// The body that the call would have.
#[derive(Serialize)]
#[serde(untagged)]
enum CallBody<'a> {
    Accepted(AcceptedBody),
    Refused(ErrorBody<'a>),
}

/// Answers commands until the service ends.
pub async fn serve(state: ApiState, mut calls: mpsc::Receiver<CommandCall>) {
    while let Some(call) = calls.recv().await {
        let api = state.0.clone();
        actix_web::rt::spawn(async move {
            let CommandCall {
                customer,
                command,
                reply,
            } = call;
            let trace = TraceId::new(api.clock.moment().uuid());
            let span = tracing::error_span!("command", %trace, level = %command.topic.level);
            let answer = answered(&api, Call { trace }, customer, command);
            // The broker sends the command again if its connection ended.
            let _ = reply.send(answer.instrument(span).await).is_ok();
        });
    }
}

async fn answered(
    api: &web::Data<Api>,
    call: Call,
    customer: CustomerId,
    command: BrokerCommand,
) -> Vec<u8> {
    let performed = performed(api, call, &customer, &command).await;
    let (status, body) = match &performed {
        Ok(accepted) => (StatusCode::ACCEPTED, CallBody::Accepted(accepted.clone())),
        Err(refused) => {
            if let Some(inner) = refused.inner() {
                tracing::error!(inner, "command failed");
            }
            let body = refused.body(call.trace);
            (refused.status_code(), CallBody::Refused(body))
        }
    };
    let answer = CommandAnswerBody {
        kind: "ACTION_RESPONSE",
        status: status.as_u16(),
        body,
    };
    serde_json::to_vec(&answer).expect("the keys of an answer are text")
}

/// Performs a command under the limits of a call.
async fn performed(
    api: &web::Data<Api>,
    call: Call,
    customer: &CustomerId,
    command: &BrokerCommand,
) -> Result<AcceptedBody, ApiError> {
    let quota = api.rate.take(customer, api.clock.now());
    quota.map_err(|RateExceeded(quota)| ApiError::too_many_calls(quota.reset_s))?;
    let CommandTopic {
        device, protocol, ..
    } = &command.topic;
    let device = device.clone().ok_or_else(|| ApiError::unknown("device"))?;
    let protocol = protocol.ok_or_else(|| ApiError::unknown("protocol of action requests"))?;
    let max = api.json_body_bytes_max;
    if command.body.len() > max {
        return Err(ApiError::body_too_large(max));
    }
    let fields = Fields::of_json(&command.body)?;
    let requested = RequestedAction {
        customer: customer.clone(),
        device,
        protocol,
        named: IdempotencyKeyHeader::of_texts(&command.keys),
        fields,
    };
    create_one(api, call, requested).await.map(AcceptedBody::of)
}
