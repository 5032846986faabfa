//! What are a customer's settings, definitions of objects and destinations?

use std::collections::BTreeMap;

use engine::Version;
use engine::definition::{Definition, DefinitionId};
use engine::delivery::destination::Destination;
use engine::ids::{CustomerId, DestinationId};
use engine::policy::CustomerSettings;
use engine::setting::Setting;
use tokio_postgres::Row;

use super::{record, record_in, records};
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::{SqlId, SqlTime};
use crate::record::Unreadable;
use crate::record::customer::{customer_id, read_customer, read_setting};
use crate::record::definition::read_text;
use crate::record::destination::read_destination;

/// The customers that are read together: the certificates of authorities make their records long.
const CUSTOMERS_AT_ONCE: i64 = 100;

/// The settings of each customer that has changed any, by customer.
pub(super) async fn of_all_customers(
    reader: &Reader,
) -> Result<Vec<CustomerSettings>, PostgresFault> {
    const CHOOSING: &str = "SELECT customer FROM setting UNION SELECT customer FROM definition \
        UNION SELECT customer FROM destination";
    let mut customers: Vec<String> = texts(&reader.rows(CHOOSING, &[]).await?)?;
    customers.extend(with_time_limits(reader).await?);
    customers.sort_unstable();
    customers.dedup();
    let mut chosen = Vec::with_capacity(customers.len());
    for some in customers.chunks(CUSTOMERS_AT_ONCE as usize) {
        chosen.extend(of_customers(reader, some).await?);
    }
    Ok(chosen)
}

/// The settings of a customer.
pub(super) async fn of_customer(
    reader: &Reader,
    customer: CustomerId,
) -> Result<CustomerSettings, PostgresFault> {
    let mut chosen = of_customers(reader, &[customer.as_str().to_owned()]).await?;
    Ok(chosen.pop().unwrap_or_else(|| nothing_of(customer)))
}

/// The customers whose devices go offline after a time of their choice.
async fn with_time_limits(reader: &Reader) -> Result<Vec<String>, PostgresFault> {
    const SQL: &str = "SELECT id, record FROM customer WHERE id > $1 ORDER BY id LIMIT $2";
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let rows = reader.rows(SQL, &[&after, &CUSTOMERS_AT_ONCE]).await?;
        let Some(last) = rows.last() else {
            return Ok(found);
        };
        after = last.try_get(0)?;
        for row in &rows {
            let customer = record(row, 1, read_customer)?;
            let chosen = customer.offline_after_s.map(|_| customer.id);
            found.extend(chosen.map(|id| id.as_str().to_owned()));
        }
    }
}

/// The settings of some customers, by customer.
async fn of_customers(
    reader: &Reader,
    customers: &[String],
) -> Result<Vec<CustomerSettings>, PostgresFault> {
    const CUSTOMERS: &str = "SELECT record FROM customer WHERE id = ANY($1)";
    const SETTINGS: &str =
        "SELECT record FROM setting WHERE customer = ANY($1) ORDER BY customer, name";
    const DEFINITIONS: &str = "SELECT customer, object, major, minor, stored_at, record \
        FROM definition WHERE customer = ANY($1) ORDER BY customer, object, major, minor";
    const DESTINATIONS: &str =
        "SELECT record FROM destination WHERE customer = ANY($1) ORDER BY customer, id";
    let mut chosen = BTreeMap::new();
    for customer in customers {
        let id = customer_id(customer)?;
        chosen.insert(id.clone(), nothing_of(id));
    }
    for customer in records(&reader.rows(CUSTOMERS, &[&customers]).await?, read_customer)? {
        if let Some(it) = chosen.get_mut(&customer.id) {
            it.offline_after_s = customer.offline_after_s;
        }
    }
    for setting in records(&reader.rows(SETTINGS, &[&customers]).await?, read_setting)? {
        if let Some(it) = chosen.get_mut(&setting.customer) {
            it.settings.push(setting);
        }
    }
    for row in reader.rows(DEFINITIONS, &[&customers]).await? {
        let definition = read_definition(&row)?;
        if let Some(it) = chosen.get_mut(&definition.id.customer) {
            it.definitions.push(definition);
        }
    }
    let destinations = reader.rows(DESTINATIONS, &[&customers]).await?;
    for destination in records(&destinations, read_destination)? {
        if let Some(it) = chosen.get_mut(&destination.customer) {
            it.destinations.push(destination);
        }
    }
    Ok(chosen.into_values().collect())
}

/// The settings a customer has ever changed.
pub(super) async fn settings_of(
    reader: &Reader,
    customer: &CustomerId,
) -> Result<Vec<Setting>, PostgresFault> {
    const SQL: &str = "SELECT record FROM setting WHERE customer = $1 ORDER BY name";
    records(
        &reader.rows(SQL, &[&customer.as_str()]).await?,
        read_setting,
    )
}

/// A definition with its text.
pub(super) async fn definition(
    reader: &Reader,
    id: &DefinitionId,
) -> Result<Option<Definition>, PostgresFault> {
    const SQL: &str = "SELECT customer, object, major, minor, stored_at, record FROM definition \
        WHERE customer = $1 AND object = $2 AND major = $3 AND minor = $4";
    let Version { major, minor } = id.version;
    let (object, major, minor) = (i32::from(id.object), i16::from(major), i16::from(minor));
    let row = reader
        .row(SQL, &[&id.customer.as_str(), &object, &major, &minor])
        .await?;
    row.as_ref().map(read_definition).transpose()
}

/// A destination.
pub(super) async fn destination(
    reader: &Reader,
    id: DestinationId,
) -> Result<Option<Destination>, PostgresFault> {
    const SQL: &str = "SELECT record FROM destination WHERE id = $1";
    let row = reader.row(SQL, &[&SqlId(*id.as_bytes())]).await?;
    record_in(row, read_destination)
}

/// The destinations of a customer.
pub(super) async fn destinations_of(
    reader: &Reader,
    customer: &CustomerId,
) -> Result<Vec<Destination>, PostgresFault> {
    const SQL: &str = "SELECT record FROM destination WHERE customer = $1 ORDER BY id";
    records(
        &reader.rows(SQL, &[&customer.as_str()]).await?,
        read_destination,
    )
}

fn nothing_of(customer: CustomerId) -> CustomerSettings {
    CustomerSettings {
        customer,
        settings: Vec::new(),
        definitions: Vec::new(),
        destinations: Vec::new(),
        offline_after_s: None,
    }
}

fn read_definition(row: &Row) -> Result<Definition, PostgresFault> {
    const DAMAGED: Unreadable = Unreadable::Damaged("the id of a definition");
    let (object, major, minor): (i32, i16, i16) =
        (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
    let SqlTime(at) = row.try_get(4)?;
    Ok(Definition {
        id: DefinitionId {
            customer: customer_id(row.try_get(0)?)?,
            object: u16::try_from(object).map_err(|_| DAMAGED)?,
            version: Version {
                major: u8::try_from(major).map_err(|_| DAMAGED)?,
                minor: u8::try_from(minor).map_err(|_| DAMAGED)?,
            },
        },
        xml: record(row, 5, read_text)?,
        at,
    })
}

fn texts(rows: &[Row]) -> Result<Vec<String>, PostgresFault> {
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
