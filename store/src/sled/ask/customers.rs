//! Who are the customers, their API clients, tokens and settings?

use engine::customer::{AccessToken, ApiClient, ClientOwner, Customer, SecretDigest};
use engine::ids::{ClientId, CustomerId};
use engine::query::{Page, PageRequest};
use engine::setting::Setting;
use sled::Db;

use super::{count, load, page_of_keys, rows_of};
use crate::record::Unreadable;
use crate::record::customer::{read_client, read_customer, read_setting, read_token};
use crate::sled::fault::Fault;
use crate::sled::key;

/// A customer.
pub(in crate::sled) fn customer(db: &Db, id: &CustomerId) -> Result<Option<Customer>, Fault> {
    load(db, &key::customer(id), read_customer)
}

/// A page of the customers.
pub(in crate::sled) fn customers(db: &Db, page: PageRequest) -> Result<Page<Customer>, Fault> {
    let total = count(db, &key::customers_counted())?;
    let mut items = Vec::new();
    if page.skip() < total {
        for key in page_of_keys(db, &key::customers(), page.skip(), page.size)? {
            items.extend(load(db, &key, read_customer)?);
        }
    }
    Ok(Page { items, total })
}

/// An API client.
pub(in crate::sled) fn client(db: &Db, id: &ClientId) -> Result<Option<ApiClient>, Fault> {
    load(db, &key::client(id), read_client)
}

/// The API clients of an owner.
pub(in crate::sled) fn clients_of(db: &Db, owner: &ClientOwner) -> Result<Vec<ApiClient>, Fault> {
    let clients = key::clients_of(owner);
    let mut found = Vec::new();
    for of_owner in rows_of(db, &clients).keys() {
        let id = key::client_from_owner(&of_owner?, &clients)
            .ok_or(Unreadable::Damaged("an index of clients"))?;
        found.extend(client(db, &id)?);
    }
    Ok(found)
}

/// An access token and its API client.
pub(in crate::sled) fn token(
    db: &Db,
    digest: &SecretDigest,
) -> Result<Option<(AccessToken, ApiClient)>, Fault> {
    let Some(token) = load(db, &key::token::token(digest), read_token)? else {
        return Ok(None);
    };
    let client = client(db, &token.client)?;
    Ok(client.map(|client| (token, client)))
}

/// The settings a customer has ever changed.
pub(in crate::sled) fn settings_of(db: &Db, customer: &CustomerId) -> Result<Vec<Setting>, Fault> {
    let rows = rows_of(db, &key::settings_of(customer));
    rows.values()
        .map(|value| Ok(read_setting(&value?)?))
        .collect()
}
