//! Which handler reduces the history of a resource to the points of a chart?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use serde_json::{Number, Value as Json};

use engine::Path;
use engine::delivery::backlog::Sequence;
use engine::ids::{DeviceId, DeviceKey};
use engine::limits::{DAY_MS, SERIES_POINTS_MAX};
use engine::moment::Timestamp;
use engine::query::series::{
    SampleFilter, SampleNumber, Series, SeriesBucket, SeriesQuery, SeriesWalk,
};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Query;
use super::devices::found;
use super::error::ApiError;
use super::fields::{Fields, instant};
use super::page::cursor;
use super::segment::PathSegment;

/// The points of a series that does not say how many: what a chart in a page has room for.
const POINTS_DEFAULT: u32 = 200;

/// The window of a series that does not say its beginning.
const WINDOW_MS: i64 = DAY_MS;

/// A series.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeriesBody {
    path: String,
    from: String,
    to: String,
    points: u32,
    items: Vec<BucketBody>,
    /// Whether the bound was reached before the beginning of the window.
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A bucket that has values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BucketBody {
    time: String,
    count: u64,
    min: Json,
    max: Json,
    mean: Json,
    last: Json,
    last_time: String,
}

/// GET: reduces the values of a path to buckets.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    Query(fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let device = DeviceKey::of(&caller.customer, &device);
    let query = query_of(fields, &caller, device, api.clock.now())?;
    found(api.store.profile(device).await?)?;
    let mut walk = SeriesWalk::of(query.clone());
    while let Some((filter, events_max)) = walk.next_page() {
        walk.handle_page(&api.store.samples_of(filter, events_max).await?);
    }
    Ok(HttpResponse::Ok().json(SeriesBody::of(&query, walk.finish())))
}

fn query_of(
    mut fields: Fields,
    caller: &AuthenticatedCaller,
    device: DeviceKey,
    now: Timestamp,
) -> Result<SeriesQuery, ApiError> {
    let path = fields.required("path", resource);
    let points = fields.number("points", 1..=SERIES_POINTS_MAX);
    let (from, to) = (
        fields.optional("from", instant),
        fields.optional("to", instant),
    );
    let to = to.unwrap_or(now);
    let from = from.unwrap_or(to.plus_ms(-WINDOW_MS));
    if from >= to {
        fields.fault("from", "must be earlier than `to`, which is now by default");
    }
    let at = fields.optional("cursor", cursor);
    let query = path.map(|path| SeriesQuery {
        filter: SampleFilter {
            customer: caller.customer.clone(),
            device,
            path,
            from,
            at,
        },
        to,
        points: points.unwrap_or(POINTS_DEFAULT),
    });
    fields.finish(query)
}

/// The path of one value.
fn resource(text: &str) -> Result<Path, String> {
    let path = Path::parse(text).map_err(|invalid| invalid.to_string())?;
    match path.to_resource() {
        Some(_) => Ok(path),
        None => Err("must address a resource or a resource instance: /3303/0/5700".to_owned()),
    }
}

impl SeriesBody {
    /// The answer to a query.
    pub(super) fn of(query: &SeriesQuery, series: Series) -> Self {
        let buckets = series.buckets.iter();
        Self {
            path: query.filter.path.to_string(),
            from: query.filter.from.iso().to_string(),
            to: query.to.iso().to_string(),
            points: query.points,
            items: buckets
                .map(|(at, bucket)| BucketBody::of(*at, bucket))
                .collect(),
            truncated: series.next.is_some(),
            next_cursor: series.next.map(|Sequence(number)| number.to_string()),
        }
    }
}

impl BucketBody {
    fn of(at: Timestamp, bucket: &SeriesBucket) -> Self {
        Self {
            time: at.iso().to_string(),
            count: bucket.count,
            min: shown(bucket.min),
            max: shown(bucket.max),
            mean: shown(SampleNumber::Float(bucket.mean)),
            last: shown(bucket.last.number),
            last_time: bucket.last.at.iso().to_string(),
        }
    }
}

fn shown(number: SampleNumber) -> Json {
    let number = match number {
        SampleNumber::Integer(number) => Number::from_i128(number),
        SampleNumber::Float(number) => Number::from_f64(number),
    };
    number.map_or(Json::Null, Json::Number)
}
