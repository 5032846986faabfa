//! The law of memory that devices can take.

use engine::moment::Timestamp;

use super::{Verdict, hold};
use crate::service::Service;

/// The bodies that devices have sent in part take no more memory than is set, in all: the oldest
/// give way.
pub(crate) fn unfinished_bodies_have_a_bound(service: &Service, now_ms: i64) -> Verdict {
    let now = Timestamp::from_ms(now_ms);
    let mut arbiters = service.arbiters();
    let beyond =
        arbiters.find_map(|it| Some(it.unfinished_beyond(now)).filter(|beyond| *beyond > 0));
    hold("unfinished_bodies_have_a_bound", beyond.is_none(), || {
        format!("they take {} bytes more", beyond.unwrap_or_default())
    })
}
