//! Which action requests are there?
//!
//! The rows of an index are in order within one protocol and status. A list over several of them
//! merges the beginnings of as many ranges, so its cost grows with what is skipped and shown and
//! not with what exists; its total is a sum of counts.

use engine::action::{Action, Protocol, Status};
use engine::idempotency::{IdempotencyKey, IdempotencyRecord, IdentifiedDevice};
use engine::ids::{ActionId, DeviceKey};
use engine::query::listed::ListedAction;
use engine::query::{ActionFilter, ActionOrder, Page, PageRequest};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{count_in, cut, id_in, record, record_in, shown};
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::action::read_action;
use crate::record::code;
use crate::record::idempotency::read_idempotency_record;

/// The device of an idempotency record that is for the whole call.
const NO_DEVICE: [u8; 16] = [0; 16];

/// An action request.
pub(super) async fn action(reader: &Reader, id: ActionId) -> Result<Option<Action>, PostgresFault> {
    const SQL: &str = "SELECT record FROM action WHERE id = $1";
    let row = reader.row(SQL, &[&SqlId(*id.as_bytes())]).await?;
    record_in(row, read_action)
}

/// A page of the action requests that pass a filter.
pub(super) async fn actions(
    reader: &Reader,
    filter: &ActionFilter,
    page: PageRequest,
) -> Result<Page<ListedAction>, PostgresFault> {
    const OF_CUSTOMER: &str = "SELECT sum(count)::bigint FROM action_count \
        WHERE customer = $1 AND protocol = ANY($2) AND status = ANY($3) HAVING count(*) > 0";
    const OF_DEVICE: &str = "SELECT count(*) FROM action \
        WHERE device = $1 AND protocol = ANY($2) AND status = ANY($3)";
    let (skip, size) = cut(page);
    let until = skip.saturating_add(size);
    let (protocols, statuses) = kinds(filter);
    let (customer, device) = (filter.customer.as_str(), filter.device);
    let device = device.map(|device| SqlId(*device.as_bytes()));
    let (count, owner): (_, &(dyn ToSql + Sync)) = match &device {
        Some(device) => (OF_DEVICE, device),
        None => (OF_CUSTOMER, &customer),
    };
    let total = reader.row(count, &[owner, &protocols, &statuses]).await?;
    let total = count_in(total)?;
    let mut items = Vec::new();
    if page.skip() < total {
        let sql = page_sql(filter);
        let parameters: [&(dyn ToSql + Sync); 6] =
            [owner, &protocols, &statuses, &until, &skip, &size];
        let rows = reader.rows(&sql, &parameters).await?;
        items = shown(&rows, |row| {
            record(row, 0, read_action).map(ListedAction::of)
        })?;
    }
    Ok(Page { items, total })
}

/// The statement of a list: one of eight, by whose requests are listed and in which order.
fn page_sql(filter: &ActionFilter) -> String {
    let owner = match filter.device {
        Some(_) => "device",
        None => "customer",
    };
    // By creation, the order of those of a status is that of their index, and written so: by `id`
    // alone, the server may read those of everybody in the order of the primary key.
    let (order, order_of_status) = match filter.order {
        ActionOrder::Created => ("id", "status, id"),
        ActionOrder::CreatedDescending => ("id DESC", "status DESC, id DESC"),
        ActionOrder::Updated => ("updated_at, id", "updated_at, id"),
        ActionOrder::UpdatedDescending => {
            let order = "updated_at DESC, id DESC";
            (order, order)
        }
    };
    let of_status = match filter.order {
        ActionOrder::Created | ActionOrder::CreatedDescending => {
            "action.status >= of_status.status AND action.status <= of_status.status"
        }
        ActionOrder::Updated | ActionOrder::UpdatedDescending => "action.status = of_status.status",
    };
    format!(
        "WITH page AS (SELECT range.id, range.updated_at \
            FROM unnest($2::smallint[]) AS of_protocol (protocol) \
            CROSS JOIN unnest($3::smallint[]) AS of_status (status) \
            CROSS JOIN LATERAL (SELECT id, updated_at FROM action \
                WHERE {owner} = $1 AND action.protocol = of_protocol.protocol \
                AND {of_status} \
                ORDER BY {order_of_status} LIMIT $4) AS range \
            ORDER BY {order} OFFSET $5 LIMIT $6) \
        SELECT (SELECT record FROM action WHERE action.id = page.id) \
        FROM page ORDER BY {order}"
    )
}

/// The protocols and the statuses that pass a filter.
fn kinds(filter: &ActionFilter) -> (Vec<i16>, Vec<i16>) {
    let protocols = Protocol::ALL.into_iter();
    let protocols = protocols.filter(|one| filter.protocol.is_none_or(|wanted| wanted == *one));
    let statuses = Status::ALL.into_iter();
    let statuses = statuses.filter(|one| filter.statuses.has(*one));
    (
        protocols.map(|it| code::of_protocol(it).into()).collect(),
        statuses.map(|it| code::of_status(it).into()).collect(),
    )
}

/// All records under an idempotency key: one row for each device of one call, or one for the call.
pub(super) async fn idempotency_records(
    reader: &Reader,
    key: IdempotencyKey,
) -> Result<Vec<IdempotencyRecord>, PostgresFault> {
    const SQL: &str = "SELECT device, device_number, record FROM idempotency \
        WHERE key = $1 ORDER BY device, device_number";
    let read_one = |row: &Row| {
        let (device, number): ([u8; 16], i64) = (id_in(row, 0)?, row.try_get(1)?);
        let identified = (device != NO_DEVICE).then(|| IdentifiedDevice {
            key: DeviceKey::from_bytes(device),
            number: number.cast_unsigned(),
        });
        record(row, 2, |value| {
            read_idempotency_record(key, identified, value)
        })
    };
    let rows = reader.rows(SQL, &[&SqlId(*key.as_bytes())]).await?;
    rows.iter().map(read_one).collect()
}
