//! Which handlers create, list and revoke the API clients of a customer?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::customer::{ApiClient, Scopes, SecretDigest};
use engine::directory::DirectoryRefusal;
use engine::directory::customer::{NewApiClient, create_client, remove_client};
use engine::ids::{ClientId, CustomerId};

use super::Api;
use super::body::Json;
use super::error::ApiError;
use super::fields::label;
use super::page::PageBody;
use super::records::settle;
use super::secret::draw;
use super::segment::PathSegment;
use super::words::{read_scopes, scope_words};

/// The response to a creation: the only one with the secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreatedBody {
    client_id: String,
    client_secret: String,
}

/// An API client in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientBody {
    client_id: String,
    name: String,
    scopes: Vec<&'static str>,
    created: String,
}

/// POST: creates an API client with a new secret.
pub(super) async fn create(
    PathSegment(customer): PathSegment<CustomerId>,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let name = fields.required("name", label);
    let scopes = fields.texts("scopes", read_scopes).unwrap_or(Scopes::ALL);
    let name = fields.finish(name)?;
    let client_secret = draw().map_err(ApiError::internal)?;
    let new = NewApiClient {
        name,
        scopes,
        secret: SecretDigest::of(&client_secret),
    };
    let client = settle(&*api.commits, async || {
        let holder = api.store.customer(customer.clone()).await?;
        let others = api.store.clients_of(customer.clone()).await?;
        Ok(create_client(
            &mut api.clock.moment(),
            holder,
            &others,
            new.clone(),
        )?)
    })
    .await?;
    let body = CreatedBody {
        client_id: client.id.to_string(),
        client_secret,
    };
    Ok(HttpResponse::Created().json(body))
}

/// GET: lists the clients of a customer by id.
pub(super) async fn list(
    PathSegment(customer): PathSegment<CustomerId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let found = api.store.customer(customer.clone()).await?;
    found.ok_or_else(|| ApiError::from(DirectoryRefusal::CustomerUnknown))?;
    let clients = api.store.clients_of(customer).await?;
    let items = clients.into_iter().map(shown).collect();
    Ok(HttpResponse::Ok().json(PageBody::whole(items)))
}

/// DELETE: revokes an API client; its tokens become invalid immediately.
pub(super) async fn delete(
    PathSegment(customer): PathSegment<CustomerId>,
    PathSegment(client): PathSegment<ClientId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    settle(&*api.commits, async || {
        Ok(remove_client(
            &customer,
            api.store.client(client.clone()).await?,
        )?)
    })
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

fn shown(client: ApiClient) -> ClientBody {
    ClientBody {
        client_id: client.id.to_string(),
        name: client.name.into_string(),
        scopes: scope_words(client.scopes),
        created: client.created_at.iso().to_string(),
    }
}
