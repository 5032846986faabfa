//! Which handlers create, list and revoke the API clients of a customer or of the network, and
//! change their secrets?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::customer::{ApiClient, ClientOwner, ClientSecret, Scopes, SecretDigest};
use engine::directory::DirectoryRefusal;
use engine::directory::customer::{
    NewApiClient, add_secret, create_client, remove_client, remove_secret,
};
use engine::ids::{ClientId, CustomerId, SecretId};

use super::Api;
use super::body::Json;
use super::error::ApiError;
use super::fields::label;
use super::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use super::page::PageBody;
use super::records::settle;
use super::secret::draw;
use super::segment::{OptionalSegment, PathSegment};
use super::words::{read_scopes, scope_words_of};

/// The longest life of a secret that expires, in seconds: ten years.
const EXPIRES_IN_S_MAX: u32 = 10 * 366 * 86_400;

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
    secrets: Vec<SecretBody>,
}

/// A secret of an API client in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SecretBody {
    secret_id: String,
    created: String,
    expires: Option<String>,
}

/// The response to the creation of a secret: the only one with the secret itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreatedSecretBody {
    client_secret: String,
    #[serde(flatten)]
    secret: SecretBody,
}

/// POST: creates an API client with a new secret.
pub(super) async fn create(
    OptionalSegment(customer): OptionalSegment<CustomerId>,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let owner = owner_in(customer);
    let identity = named.read(&["client", owner_name(&owner)], &mut fields);
    let name = fields.required("name", label);
    let scopes = match owner {
        ClientOwner::Customer(_) => fields.texts("scopes", read_scopes).unwrap_or(Scopes::ALL),
        ClientOwner::Network => Scopes::NONE,
    };
    let name = fields.finish(name)?;
    let client_secret = draw().map_err(ApiError::internal)?;
    let new = NewApiClient {
        name,
        scopes,
        secret: SecretDigest::of(&client_secret),
    };
    let directory = api.clone();
    let act = async move |keeper: ResponseKeeper| {
        let api = directory;
        settle(&*api.commits, async || {
            let existing = existing(&api, &owner).await?;
            let others = api.store.clients_of(owner.clone()).await?;
            let m = &mut api.clock.moment();
            let decided = create_client(m, existing, &others, new.clone())?;
            keeper.keep(decided, |client| {
                let body = CreatedBody {
                    client_id: client.id.to_string(),
                    client_secret: client_secret.clone(),
                };
                CreatedResponse::of(None, &body)
            })
        })
        .await
    };
    idempotency::create(&api, None, identity, act).await
}

/// GET: lists the clients of an owner by id.
pub(super) async fn list(
    OptionalSegment(customer): OptionalSegment<CustomerId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let owner = owner_in(customer);
    let existing = existing(&api, &owner).await?;
    let owner = existing.ok_or_else(|| ApiError::from(DirectoryRefusal::CustomerUnknown))?;
    let clients = api.store.clients_of(owner).await?;
    let items = clients.into_iter().map(shown).collect();
    Ok(HttpResponse::Ok().json(PageBody::whole(items)))
}

/// DELETE: revokes an API client; its tokens become invalid immediately.
pub(super) async fn delete(
    OptionalSegment(customer): OptionalSegment<CustomerId>,
    PathSegment(client): PathSegment<ClientId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let owner = owner_in(customer);
    settle(&*api.commits, async || {
        Ok(remove_client(
            &owner,
            api.store.client(client.clone()).await?,
        )?)
    })
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST: gives an API client one more secret.
pub(super) async fn create_secret(
    OptionalSegment(customer): OptionalSegment<CustomerId>,
    PathSegment(client): PathSegment<ClientId>,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let owner = owner_in(customer);
    let place = ["secret", owner_name(&owner), client.as_str()];
    let identity = named.read(&place, &mut fields);
    let expires_in_s = fields.number("expiresIn", 1..=EXPIRES_IN_S_MAX);
    let expires_in_s = fields.finish(Some(expires_in_s))?;
    let client_secret = draw().map_err(ApiError::internal)?;
    let digest = SecretDigest::of(&client_secret);
    let directory = api.clone();
    let act = async move |keeper: ResponseKeeper| {
        let api = directory;
        settle(&*api.commits, async || {
            let found = api.store.client(client.clone()).await?;
            let m = &mut api.clock.moment();
            let decided = add_secret(m, &owner, found, digest, expires_in_s)?;
            keeper.keep(decided, |secret| {
                let body = CreatedSecretBody {
                    client_secret: client_secret.clone(),
                    secret: SecretBody::of(&secret),
                };
                CreatedResponse::of(None, &body)
            })
        })
        .await
    };
    idempotency::create(&api, None, identity, act).await
}

/// DELETE: removes a secret of an API client.
pub(super) async fn delete_secret(
    OptionalSegment(customer): OptionalSegment<CustomerId>,
    PathSegment(client): PathSegment<ClientId>,
    PathSegment(secret): PathSegment<SecretId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let owner = owner_in(customer);
    settle(&*api.commits, async || {
        let found = api.store.client(client.clone()).await?;
        Ok(remove_secret(api.clock.now(), &owner, found, secret)?)
    })
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Whose API clients a path is about: those of the customer that it names, or of the network.
fn owner_in(customer: Option<CustomerId>) -> ClientOwner {
    customer.map_or(ClientOwner::Network, ClientOwner::Customer)
}

/// The owner, unless it is a customer that does not exist.
async fn existing(api: &Api, owner: &ClientOwner) -> Result<Option<ClientOwner>, ApiError> {
    let exists = match owner {
        ClientOwner::Customer(customer) => {
            let found = api.store.customer(customer.clone()).await?;
            found.is_some()
        }
        ClientOwner::Network => true,
    };
    Ok(exists.then(|| owner.clone()))
}

/// The name of an owner among those of all; no customer has an empty id.
fn owner_name(owner: &ClientOwner) -> &str {
    match owner {
        ClientOwner::Customer(customer) => customer.as_str(),
        ClientOwner::Network => "",
    }
}

impl SecretBody {
    fn of(secret: &ClientSecret) -> Self {
        Self {
            secret_id: secret.id.to_string(),
            created: secret.created_at.iso().to_string(),
            expires: secret.expires_at.map(|at| at.iso().to_string()),
        }
    }
}

fn shown(client: ApiClient) -> ClientBody {
    ClientBody {
        secrets: client.secrets.iter().map(SecretBody::of).collect(),
        scopes: scope_words_of(&client, client.scopes),
        client_id: client.id.to_string(),
        name: client.name.into_string(),
        created: client.created_at.iso().to_string(),
    }
}
