//! Which handlers show and change the settings of a customer (seed 4.1)?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::directory::Decision;
use engine::directory::setting::{change_setting, state_of};
use engine::setting::{Setting, SettingName, SettingState};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Json;
use super::error::ApiError;
use super::page::PageBody;
use super::records::{settle, to_its_end};
use super::segment::{PathSegment, Platform};
use super::words::Word;

/// A setting with its state.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SettingBody {
    customer_id: String,
    name: &'static str,
    state: &'static str,
}

/// GET: lists every setting of the caller.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    PathSegment(platform): PathSegment<Platform>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    known(&api, &platform)?;
    let customer = caller.customer;
    let changed = api.store.settings_of(customer.clone()).await?;
    let setting = |name| Setting {
        customer: customer.clone(),
        name,
        state: state_of(name, &changed),
    };
    let items = SettingName::ALL
        .into_iter()
        .map(setting)
        .map(|it| SettingBody::of(&it))
        .collect();
    Ok(HttpResponse::Ok().json(PageBody::whole(items)))
}

/// GET: one setting of the caller.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(platform): PathSegment<Platform>,
    PathSegment(name): PathSegment<SettingName>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    known(&api, &platform)?;
    let changed = api.store.settings_of(caller.customer.clone()).await?;
    let setting = Setting {
        customer: caller.customer,
        name,
        state: state_of(name, &changed),
    };
    Ok(HttpResponse::Ok().json(SettingBody::of(&setting)))
}

/// PATCH: enables or disables a setting.
pub(super) async fn change(
    caller: AuthenticatedCaller,
    PathSegment(platform): PathSegment<Platform>,
    PathSegment(name): PathSegment<SettingName>,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    known(&api, &platform)?;
    let state = fields.required("state", SettingState::read);
    let state = fields.finish(state)?;
    let setting = Setting {
        customer: caller.customer,
        name,
        state,
    };
    to_its_end(changed(api, setting.clone())).await?;
    Ok(HttpResponse::Ok().json(SettingBody::of(&setting)))
}

async fn changed(api: web::Data<Api>, setting: Setting) -> Result<(), ApiError> {
    let decided = Decision {
        batch: change_setting(setting.clone()),
        answer: (),
    };
    settle(&*api.commits, async || Ok(decided.clone())).await?;
    Ok(api.devices.take_policy(setting.customer).await?)
}

fn known(api: &Api, platform: &Platform) -> Result<(), ApiError> {
    if platform.0 == *api.platform {
        Ok(())
    } else {
        Err(ApiError::unknown("platform"))
    }
}

impl SettingBody {
    fn of(setting: &Setting) -> Self {
        Self {
            customer_id: setting.customer.to_string(),
            name: setting.name.word(),
            state: setting.state.word(),
        }
    }
}
