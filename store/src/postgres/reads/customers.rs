//! Who are the customers, their API clients and tokens?

use engine::customer::{AccessToken, ApiClient, ClientOwner, Customer, SecretDigest};
use engine::ids::{ClientId, CustomerId};
use engine::query::{Page, PageRequest};

use super::{count_in, cut, record, record_in, shown};
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::record::customer::{read_client, read_customer, read_token};

/// A customer.
pub(super) async fn customer(
    reader: &Reader,
    id: &CustomerId,
) -> Result<Option<Customer>, PostgresFault> {
    const SQL: &str = "SELECT record FROM customer WHERE id = $1";
    record_in(reader.row(SQL, &[&id.as_str()]).await?, read_customer)
}

/// A page of the customers.
pub(super) async fn customers(
    reader: &Reader,
    page: PageRequest,
) -> Result<Page<Customer>, PostgresFault> {
    const COUNT: &str = "SELECT count(*) FROM customer";
    // What is skipped is read from the index alone.
    const PAGE: &str = "SELECT record FROM customer \
        WHERE id IN (SELECT id FROM customer ORDER BY id OFFSET $1 LIMIT $2) ORDER BY id";
    let (skip, size) = cut(page);
    let rows = reader.rows(PAGE, &[&skip, &size]).await?;
    Ok(Page {
        items: shown(&rows, |row| record(row, 0, read_customer))?,
        total: count_in(reader.row(COUNT, &[]).await?)?,
    })
}

/// An API client.
pub(super) async fn client(
    reader: &Reader,
    id: &ClientId,
) -> Result<Option<ApiClient>, PostgresFault> {
    const SQL: &str = "SELECT record FROM api_client WHERE id = $1";
    record_in(reader.row(SQL, &[&id.as_str()]).await?, read_client)
}

/// The API clients of an owner.
pub(super) async fn clients_of(
    reader: &Reader,
    owner: &ClientOwner,
) -> Result<Vec<ApiClient>, PostgresFault> {
    const OF_CUSTOMER: &str = "SELECT record FROM api_client WHERE customer = $1 ORDER BY id";
    const OF_NETWORK: &str = "SELECT record FROM api_client WHERE customer IS NULL ORDER BY id";
    let rows = match owner {
        ClientOwner::Customer(customer) => reader.rows(OF_CUSTOMER, &[&customer.as_str()]).await?,
        ClientOwner::Network => reader.rows(OF_NETWORK, &[]).await?,
    };
    shown(&rows, |row| record(row, 0, read_client))
}

/// An access token and its API client.
pub(super) async fn token(
    reader: &Reader,
    digest: &SecretDigest,
) -> Result<Option<(AccessToken, ApiClient)>, PostgresFault> {
    const SQL: &str = "SELECT access_token.record, api_client.record \
        FROM access_token JOIN api_client ON api_client.id = access_token.client \
        WHERE access_token.digest = $1";
    let Some(row) = reader.row(SQL, &[&digest.as_bytes().as_slice()]).await? else {
        return Ok(None);
    };
    let token = record(&row, 0, read_token)?;
    Ok(Some((token, record(&row, 1, read_client)?)))
}
