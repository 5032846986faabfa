//! The statistics of the administration log (seed 4.9).

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::admin_log::daily::{DAYS_TOLD, DayAmount, Statistics, StatisticsQuery};
use engine::admin_log::entry::Category;
use engine::ids::CustomerId;
use engine::moment::Timestamp;
use engine::zone::Zone;

use crate::api::Api;
use crate::api::access::AuthenticatedCaller;
use crate::api::body::Query;
use crate::api::error::ApiError;
use crate::api::fields::Fields;
use crate::api::words::Word;

/// The statistics of the log (seed 2.3).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct StatisticsBody {
    total_unique_devices: u64,
    administration_logs: Vec<DayBody>,
}

/// The number of entries of a day.
#[derive(Serialize)]
struct DayBody {
    amount: u64,
    day: String,
}

/// GET: counts the entries of each of the last days, and their devices.
pub(in crate::api) async fn show(
    caller: AuthenticatedCaller,
    Query(fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(caller.customer, api.clock.now(), fields)?;
    let statistics = api.store.log_statistics(wanted).await?;
    Ok(HttpResponse::Ok().json(StatisticsBody::of(&statistics)))
}

fn wanted(
    customer: CustomerId,
    now: Timestamp,
    mut fields: Fields,
) -> Result<StatisticsQuery, ApiError> {
    let zone = fields.required("timezone", Zone::read);
    let category = fields.optional("category", Category::read);
    fields.finish(zone.map(|zone| StatisticsQuery {
        customer,
        days: zone.last_days(now, DAYS_TOLD),
        category,
    }))
}

impl StatisticsBody {
    /// The statistics.
    pub(in crate::api) fn of(statistics: &Statistics) -> Self {
        Self {
            total_unique_devices: statistics.devices,
            administration_logs: statistics.amounts.iter().map(DayBody::of).collect(),
        }
    }
}

impl DayBody {
    /// The date is local, although the format has a UTC offset.
    fn of(day: &DayAmount) -> Self {
        Self {
            amount: day.amount,
            day: format!("{}T00:00:00.000+0000", day.date),
        }
    }
}
