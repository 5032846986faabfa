//! Which handlers create, list and delete customers?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use tracing::Instrument as _;

use actors::devices::Devices;
use engine::customer::{ClientOwner, Customer};
use engine::directory::DirectoryRefusal;
use engine::directory::customer::{
    NewCustomer, create_customer, draft_customer, remove_actions, remove_client, remove_customer,
};
use engine::ids::{CustomerId, DeviceKey};
use engine::query::devices::{DeviceFilter, DevicePageRequest};
use engine::query::{ActionFilter, PageRequest};
use engine::supervision::Unserved;

use super::Api;
use super::body::{Json, Query};
use super::error::ApiError;
use super::fields::label;
use super::firmware;
use super::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use super::jobs;
use super::page::{PageBody, wanted};
use super::records::settle;
use super::schedules;
use super::segment::PathSegment;

/// Devices deleted at a time: they commit together, and few enough that other commits do not wait.
const RETIRED_AT_ONCE: u32 = 100;

/// The response to a creation.
#[derive(Serialize)]
struct CreatedBody {
    id: String,
    name: String,
}

/// A customer in a list.
#[derive(Serialize)]
struct CustomerBody {
    id: String,
    name: String,
    number: u64,
    created: String,
}

/// POST: creates a customer.
pub(super) async fn create(
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["customer"], &mut fields);
    let id = fields.optional("id", CustomerId::parse);
    let name = fields.required("name", label);
    let new = fields.finish(name.map(|name| NewCustomer { id, name }))?;
    let directory = api.clone();
    let act = async move |keeper: ResponseKeeper| {
        let api = directory;
        settle(&*api.commits, async || {
            let customer = draft_customer(&mut api.clock.moment(), new.clone());
            let holder = api.store.customer(customer.id.clone()).await?;
            keeper.keep(create_customer(customer, holder)?, |customer| {
                let (id, name) = (customer.id.to_string(), customer.name.into_string());
                let location = format!("/operator-api/v1/customers/{id}");
                CreatedResponse::of(Some(location), &CreatedBody { id, name })
            })
        })
        .await
    };
    idempotency::create(&api, None, identity, act).await
}

/// GET: lists customers by id.
pub(super) async fn list(
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let page = api.store.customers(wanted).await?;
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, shown)))
}

/// DELETE: deletes a customer and all its data; an interrupted call can be repeated.
pub(super) async fn delete(
    PathSegment(customer): PathSegment<CustomerId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let found = api.store.customer(customer.clone()).await?;
    found.ok_or_else(|| ApiError::from(DirectoryRefusal::CustomerUnknown))?;
    // Without API clients, no devices are created while they are deleted.
    let owner = ClientOwner::Customer(customer.clone());
    for client in api.store.clients_of(owner.clone()).await? {
        let decided = remove_client(&owner, Some(client))?;
        settle(&*api.commits, async || Ok(decided.clone())).await?;
    }
    api.jobs.forget(customer.clone()).await;
    schedules::remove_all(&api, &customer).await?;
    jobs::remove_all(&api, &customer).await?;
    delete_devices(&api, &customer).await?;
    // A device that a campaign updates ends its row when it is removed.
    firmware::remove_all(&api, &customer).await?;
    api.deliveries.forget(customer.clone()).await?;
    settle(&*api.commits, async || {
        Ok(remove_customer(
            api.store.customer(customer.clone()).await?,
        )?)
    })
    .await?;
    // A device, a schedule or a job in creation was committed before the customer was deleted, or
    // not at all. A forwarder may have begun again that was found before.
    api.deliveries.forget(customer.clone()).await?;
    api.jobs.forget(customer.clone()).await;
    schedules::remove_all(&api, &customer).await?;
    jobs::remove_all(&api, &customer).await?;
    delete_devices(&api, &customer).await?;
    firmware::remove_all(&api, &customer).await?;
    api.networks.put(&customer, Box::default());
    // A new customer with the same id must not inherit the settings of this one.
    api.devices.take_policy(customer).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Deletes the devices of a customer and its action requests, which outlive their devices.
async fn delete_devices(api: &Api, customer: &CustomerId) -> Result<(), ApiError> {
    retire_devices(api, customer).await?;
    let all = ActionFilter::all_of(customer.clone());
    let first = PageRequest { number: 1, size: 1 };
    let mut before = u64::MAX;
    loop {
        let total = api.store.actions(all.clone(), first).await?.total;
        if total == 0 {
            return Ok(());
        }
        if total >= before {
            return Err(ApiError::internal(
                "requests that were deleted are still counted",
            ));
        }
        settle(&*api.commits, async || Ok(remove_actions(customer))).await?;
        before = total;
    }
}

async fn retire_devices(api: &Api, customer: &CustomerId) -> Result<(), ApiError> {
    let first = DevicePageRequest::of(PageRequest {
        number: 1,
        size: RETIRED_AT_ONCE,
    });
    let all = DeviceFilter::all_of(customer.clone());
    let mut before = Vec::new();
    loop {
        let page = api.store.devices_of(all.clone(), first.clone()).await??;
        let keys: Vec<_> = page.items.iter().map(|it| it.profile.key()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        if keys == before {
            return Err(ApiError::internal(
                "devices that were retired are still listed",
            ));
        }
        retire_all(&api.devices, &keys).await?;
        before = keys;
    }
}

async fn retire_all(devices: &Devices, keys: &[DeviceKey]) -> Result<(), ApiError> {
    let retire = |key: &DeviceKey| {
        let (devices, key) = (devices.clone(), *key);
        let retiring = async move { devices.retire(key).await };
        actix_rt::spawn(retiring.in_current_span())
    };
    let retiring: Vec<_> = keys.iter().map(retire).collect();
    for retired in retiring {
        match retired.await.map_err(ApiError::internal)? {
            Ok(()) | Err(Unserved::Unknown) => {}
            Err(unserved) => return Err(ApiError::from(unserved)),
        }
    }
    Ok(())
}

fn shown(customer: Customer) -> CustomerBody {
    CustomerBody {
        id: customer.id.to_string(),
        name: customer.name.into_string(),
        number: customer.number,
        created: customer.created_at.iso().to_string(),
    }
}
