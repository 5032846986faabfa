//! Which devices of a customer have a name with a prefix?

use std::collections::{BTreeMap, HashSet};

use engine::ids::DeviceKey;
use engine::limits::NAMES_SEARCHED_MAX;
use engine::query::devices::{DevicePage, DevicePageRequest, DeviceTotal, SearchTooBroad};

use super::{Candidate, Candidates, Examination, IdRange, candidate_in, chunks_of};
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::reads::id_in;
use crate::postgres::sql_types::SqlId;

/// A page of the candidates that have a name with a prefix and pass the rest of the filter.
pub(super) async fn devices_named(
    reader: &Reader,
    prefix: &str,
    candidates: &Candidates<'_>,
    wanted: &DevicePageRequest,
) -> Result<Result<DevicePage, SearchTooBroad>, PostgresFault> {
    let own = usize::try_from(candidates.count).unwrap_or(usize::MAX);
    let named = by_names(reader, prefix, candidates, own.min(NAMES_SEARCHED_MAX)).await?;
    let found = match named {
        Some(found) => found,
        None if own > NAMES_SEARCHED_MAX => return Ok(Err(SearchTooBroad)),
        None => among(reader, prefix, candidates).await?,
    };
    let after = wanted.after.as_ref().map_or("", |id| id.as_str());
    let behind = found.into_values().filter(|it| it.id.as_str() > after);
    let behind: Vec<Candidate> = behind.collect();
    let total = DeviceTotal::Exactly(u64::try_from(behind.len()).unwrap_or(u64::MAX));
    let skip = usize::try_from(wanted.page.skip()).unwrap_or(usize::MAX);
    let rest = behind.into_iter().skip(skip).collect();
    let page = super::page_of(reader, rest, wanted.page.size, None, total);
    page.await.map(Ok)
}

/// Devices by their ids.
type Found = BTreeMap<String, Candidate>;

/// The devices found by looking at every name with the prefix, the ids of candidates first; nothing
/// if there are too many.
async fn by_names(
    reader: &Reader,
    prefix: &str,
    candidates: &Candidates<'_>,
    names_max: usize,
) -> Result<Option<Found>, PostgresFault> {
    const NAMES: &str = "SELECT device FROM device_name \
        WHERE kind = $1 AND name >= $2 AND name < $3 LIMIT $4";
    const OWN: &str = "SELECT device_id, key FROM device WHERE key = ANY($1) AND customer = $2";
    let mut left = i64::try_from(names_max).unwrap_or(i64::MAX);
    let ids = IdRange::with_prefix(prefix);
    let one_more = (0, left.saturating_add(1));
    let with_prefix = candidates.devices(reader, ids, one_more).await?;
    left -= i64::try_from(with_prefix.len()).unwrap_or(i64::MAX);
    let mut others: HashSet<DeviceKey> = HashSet::new();
    let [first, mut end] = [prefix.as_bytes(); 2].map(<[u8]>::to_vec);
    // No text has this byte.
    end.push(0xff);
    // ICCIDs, IMSIs, MSISDNs and endpoint names.
    for kind in 1..=4_i16 {
        if left < 0 {
            return Ok(None);
        }
        let rows = reader
            .rows(NAMES, &[&kind, &first, &end, &left.saturating_add(1)])
            .await?;
        left -= i64::try_from(rows.len()).unwrap_or(i64::MAX);
        for row in rows {
            others.insert(DeviceKey::from_bytes(id_in(&row, 0)?));
        }
    }
    if left < 0 {
        return Ok(None);
    }
    for seen in &with_prefix {
        others.remove(&seen.device);
    }
    let customer = candidates.filter.customer.as_str();
    let others: Vec<SqlId> = others.iter().map(|it| SqlId(*it.as_bytes())).collect();
    let own = reader.rows(OWN, &[&others, &customer]).await?;
    let own = own
        .iter()
        .map(candidate_in)
        .collect::<Result<_, PostgresFault>>()?;
    let mut found = candidates.rest().passing(reader, with_prefix).await?;
    let whole = Examination::of(candidates.filter);
    found.extend(whole.passing(reader, own).await?);
    Ok(Some(by_id(found)))
}

/// The devices found by looking at every candidate.
async fn among(
    reader: &Reader,
    prefix: &str,
    candidates: &Candidates<'_>,
) -> Result<Found, PostgresFault> {
    const NAMED: &str = "SELECT DISTINCT device FROM device_name WHERE device = ANY($1) \
        AND kind <= 4 AND name >= $2 AND name < $3";
    let [first, mut end] = [prefix.as_bytes(); 2].map(<[u8]>::to_vec);
    end.push(0xff);
    let every = (0, i64::try_from(NAMES_SEARCHED_MAX).unwrap_or(i64::MAX));
    let mut devices = candidates.devices(reader, IdRange::all(), every).await?;
    let mut named = HashSet::new();
    for keys in chunks_of(&devices) {
        for row in reader.rows(NAMED, &[&keys, &first, &end]).await? {
            named.insert(DeviceKey::from_bytes(id_in(&row, 0)?));
        }
    }
    devices.retain(|it| it.id.starts_with(prefix) || named.contains(&it.device));
    let found = candidates.rest().passing(reader, devices).await?;
    Ok(by_id(found))
}

fn by_id(devices: Vec<Candidate>) -> Found {
    let by_id = devices.into_iter().map(|it| (it.id.clone(), it));
    by_id.collect()
}
