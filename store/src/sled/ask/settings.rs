//! What are a customer's settings, definitions of objects and destinations?

use std::collections::BTreeSet;

use engine::definition::{Definition, DefinitionId};
use engine::delivery::destination::Destination;
use engine::ids::{CustomerId, DestinationId};
use engine::policy::CustomerSettings;
use sled::Db;

use super::customers::{customer as customer_record, settings_of};
use super::{load, rows_of};
use crate::record::Unreadable;
use crate::record::customer::read_customer;
use crate::record::definition::{Defined, read_defined, read_text};
use crate::record::destination::read_destination;
use crate::sled::customers_having::customers_having;
use crate::sled::fault::Fault;
use crate::sled::key;

/// A definition is replaced once per group, so a reader that fails this often in a row has met
/// damage, not a writer.
const READS_MAX: u32 = 16;

/// The settings of each customer that has changed any, by customer.
pub(in crate::sled) fn all_customer_settings(db: &Db) -> Result<Vec<CustomerSettings>, Fault> {
    let tables = [
        key::settings(),
        key::definition::definitions(),
        key::outbox::all_destinations(),
    ];
    let mut customers = BTreeSet::new();
    for table in tables {
        customers.extend(customers_having(db, &table)?);
    }
    for key in rows_of(db, &key::customers()).keys() {
        // The certificates of authorities make a customer longer than a row.
        let customer = load(db, &key?, read_customer)?;
        let chosen = customer.filter(|it| it.offline_after_s.is_some());
        customers.extend(chosen.map(|it| it.id));
    }
    let chosen = customers
        .iter()
        .map(|customer| customer_settings(db, customer));
    chosen.collect()
}

/// The settings of a customer.
pub(in crate::sled) fn customer_settings(
    db: &Db,
    customer: &CustomerId,
) -> Result<CustomerSettings, Fault> {
    Ok(CustomerSettings {
        customer: customer.clone(),
        settings: settings_of(db, customer)?,
        definitions: definitions_of(db, customer)?,
        destinations: destinations_of(db, customer)?,
        offline_after_s: customer_record(db, customer)?.and_then(|it| it.offline_after_s),
    })
}

/// A definition with its text.
pub(in crate::sled) fn definition(db: &Db, id: DefinitionId) -> Result<Option<Definition>, Fault> {
    let key = key::definition::definition(&id);
    for _ in 0..READS_MAX {
        let Some(Defined { at, text }) = load(db, &key, read_defined)? else {
            return Ok(None);
        };
        // The text is removed in the group that replaces or removes the definition.
        if let Some(xml) = load(db, &key::definition::text(text), read_text)? {
            return Ok(Some(Definition { id, xml, at }));
        }
    }
    Err(Unreadable::Damaged("the text of a definition is missing").into())
}

/// A destination.
pub(in crate::sled) fn destination(
    db: &Db,
    id: DestinationId,
) -> Result<Option<Destination>, Fault> {
    load(db, &key::outbox::destination(id), read_destination)
}

fn definitions_of(db: &Db, customer: &CustomerId) -> Result<Vec<Definition>, Fault> {
    let mut definitions = Vec::new();
    for key in rows_of(db, &key::definition::of_customer(customer)).keys() {
        let id = key::definition::id_of(&key?);
        let id = id.ok_or(Unreadable::Damaged("the key of a definition"))?;
        definitions.extend(definition(db, id)?);
    }
    Ok(definitions)
}

/// The destinations of a customer.
pub(in crate::sled) fn destinations_of(
    db: &Db,
    customer: &CustomerId,
) -> Result<Vec<Destination>, Fault> {
    let mut destinations = Vec::new();
    for key in rows_of(db, &key::outbox::destinations_of(customer)).keys() {
        let id = key::last_id(&key?).ok_or(Unreadable::Damaged("an index of destinations"))?;
        destinations.extend(destination(db, DestinationId::from_bytes(id))?);
    }
    Ok(destinations)
}
