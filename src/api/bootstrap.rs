//! Which handlers set what devices are given when they are bootstrapped?

pub(super) mod described;
mod request_body;

use std::collections::BTreeMap;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use serde_json::Value as Json;

use engine::Code;
use engine::bootstrap::{
    BootstrapConfig, BootstrapRecord, BootstrapScope, BootstrapServer, BootstrapStep,
};
use engine::delivery::body::value;
use engine::directory::bootstrap::{put_config, remove_config};
use engine::directory::{Decision, DirectoryRefusal};
use engine::ids::{DeviceId, DeviceKey};
use engine::profile::Profile;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body;
use super::destinations::MASKED;
use super::dtls::pem;
use super::error::ApiError;
use super::records::settle;
use super::segment::OptionalSegment;
use super::words::Word;
use request_body::ConfigParser;

/// What a 404 names if there is none.
const NAME: &str = "bootstrap configuration";

/// What devices are given.
#[derive(Serialize)]
pub(super) struct ConfigBody {
    servers: Vec<ServerBody>,
    objects: BTreeMap<String, Json>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerBody {
    short_id: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    lifetime: u32,
    binding: String,
    security: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'static str>,
}

/// The last bootstrap of a device, in the inspector.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BootstrapBody {
    state: &'static str,
    security: &'static str,
    started: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    steps: Vec<StepBody>,
}

#[derive(Serialize)]
struct StepBody {
    operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u16>,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// GET: shows the configuration of the customer, or of a device.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    OptionalSegment(device): OptionalSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let config = stored(&api, scope_of(&caller, device.as_ref())).await?;
    Ok(HttpResponse::Ok().json(ConfigBody::of(&config)))
}

/// PUT: sets it.
pub(super) async fn put(
    caller: AuthenticatedCaller,
    OptionalSegment(device): OptionalSegment<DeviceId>,
    body::Json(fields): body::Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope_of(&caller, device.as_ref());
    let settings = api.store.customer_settings(caller.customer.clone()).await?;
    let device = profile_of(&api, &scope).await?;
    let before = api.store.bootstrap_config(scope.clone()).await?;
    let parser = ConfigParser {
        settings: &settings,
        scope: &scope,
        endpoint: device.as_ref().map(|device| &device.endpoint),
        stored: before.as_ref(),
        master_key: &api.master_key,
        now: api.clock.now(),
    };
    let config = parser.parse(fields)?;
    settle(&*api.commits, async || {
        exists(&api, &scope).await?;
        let batch = put_config(scope.clone(), config.clone());
        Ok(Decision { batch, answer: () })
    })
    .await?;
    Ok(HttpResponse::Ok().json(ConfigBody::of(&config)))
}

/// DELETE: removes it.
pub(super) async fn delete(
    caller: AuthenticatedCaller,
    OptionalSegment(device): OptionalSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope_of(&caller, device.as_ref());
    settle(&*api.commits, async || {
        stored(&api, scope.clone()).await?;
        let batch = remove_config(scope.clone());
        Ok(Decision { batch, answer: () })
    })
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

fn scope_of(caller: &AuthenticatedCaller, device: Option<&DeviceId>) -> BootstrapScope {
    match device {
        Some(device) => BootstrapScope::Device(DeviceKey::of(&caller.customer, device)),
        None => BootstrapScope::Customer(caller.customer.clone()),
    }
}

async fn stored(api: &Api, scope: BootstrapScope) -> Result<BootstrapConfig, ApiError> {
    exists(api, &scope).await?;
    let config = api.store.bootstrap_config(scope).await?;
    config.ok_or_else(|| ApiError::unknown(NAME))
}

/// A device of the caller may not exist; the customer of a caller does.
async fn exists(api: &Api, scope: &BootstrapScope) -> Result<(), ApiError> {
    match (scope, profile_of(api, scope).await?) {
        (BootstrapScope::Device(_), None) => Err(DirectoryRefusal::DeviceUnknown.into()),
        (BootstrapScope::Device(_), Some(_)) | (BootstrapScope::Customer(_), _) => Ok(()),
    }
}

/// The device of a configuration, if it is that of one which exists.
async fn profile_of(api: &Api, scope: &BootstrapScope) -> Result<Option<Profile>, ApiError> {
    match scope {
        BootstrapScope::Device(device) => Ok(api.store.profile(*device).await?),
        BootstrapScope::Customer(_) => Ok(None),
    }
}

impl ConfigBody {
    /// The configuration.
    pub(super) fn of(config: &BootstrapConfig) -> Self {
        let objects = config.objects.iter();
        Self {
            servers: config.servers.iter().map(ServerBody::of).collect(),
            objects: objects
                .map(|(path, value)| (path.to_string(), value::shown(value)))
                .collect(),
        }
    }
}

impl ServerBody {
    fn of(server: &BootstrapServer) -> Self {
        let certificate = server.certificate.as_ref();
        Self {
            short_id: server.short_id,
            uri: server.uri.as_ref().map(ToString::to_string),
            lifetime: server.lifetime_s,
            binding: server.binding.to_string(),
            security: server.security.word(),
            certificate: certificate.map(|it| pem([&it.certificate])),
            key: certificate.map(|_| MASKED),
        }
    }
}

impl BootstrapBody {
    /// A bootstrap.
    pub(super) fn of(bootstrap: &BootstrapRecord) -> Self {
        Self {
            state: bootstrap.state.word(),
            security: bootstrap.security.word(),
            started: bootstrap.started_at.iso().to_string(),
            ended: bootstrap.ended_at.map(|at| at.iso().to_string()),
            error: bootstrap.error.as_ref().map(ToString::to_string),
            steps: bootstrap.steps.iter().map(StepBody::of).collect(),
        }
    }
}

impl StepBody {
    fn of(step: &BootstrapStep) -> Self {
        Self {
            operation: step.operation.word(),
            path: step.path.map(|path| path.to_string()),
            format: step.format,
            time: step.at.iso().to_string(),
            code: step.answer.map(Code::digits),
        }
    }
}
