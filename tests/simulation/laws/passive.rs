//! Laws about passive reporting.

use engine::action::{Protocol, Status};
use engine::moment::Timestamp;
use engine::setting::SettingState;
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload;

use super::{LawChecker, Verdict, hold, reaching};
use crate::disk::Durable;

/// Objects that are never read: the keys and accounts of a device, and the device object.
const UNREAD: [u16; 5] = [0, 1, 2, 3, 21];

/// Devices are read by passive reporting only while their customer has enabled it.
pub(super) fn passive_reporting_needs_its_setting(who: usize, reporting: SettingState) -> Verdict {
    let is_wanted = reporting == SettingState::Enabled;
    hold("passive_reporting_needs_its_setting", is_wanted, || {
        format!("device {who} is read, and nobody wants that")
    })
}

/// Passive reporting reads whole objects only, and none of the excluded ones.
pub(super) fn passive_reporting_excludes_private_objects(who: usize, datagram: &[u8]) -> Verdict {
    let message = Message::decode(datagram).expect("the service speaks well");
    if message.block1().is_some() {
        // One block of a list of paths cannot be judged.
        return Ok(());
    }
    let requested = requested_paths(&message);
    let is_fit = |path: &Path| {
        !UNREAD.contains(&path.object_id()) && *path == Path::object(path.object_id())
    };
    let is_right = requested
        .as_ref()
        .is_some_and(|paths| paths.iter().all(is_fit));
    hold(
        "passive_reporting_excludes_private_objects",
        is_right,
        || format!("device {who} is asked for {requested:?}"),
    )
}

/// Requests created before the device was last heard are sent before passive reads.
pub(super) fn callers_go_before_passive_reporting(
    laws: &LawChecker,
    at_ms: i64,
    who: usize,
    durable: &Durable,
) -> Verdict {
    let heard_at_ms = laws.uplinks[who].accepted_at_ms;
    let may_be_silent = laws.may_be_silent(who);
    let mut pending = durable.pending(who);
    let before = pending.find(|action| {
        action.status == Status::Scheduled
            && action.created_at.as_ms() < heard_at_ms
            && action.expires_at.as_ms() > at_ms
            && !action.is_deferred(Timestamp::from_ms(heard_at_ms))
            && (!may_be_silent || action.protocol() == Protocol::Lwm2m)
            && reaching::has_a_way(laws, (action, Timestamp::from_ms(at_ms)), who, durable)
    });
    hold(
        "callers_go_before_passive_reporting",
        before.is_none(),
        || {
            let before = before.map(|action| action.id);
            format!("device {who} is read, and {before:?} waits")
        },
    )
}

/// The paths that a request reads.
fn requested_paths(message: &Message) -> Option<Vec<Path>> {
    if message.code == Code::FETCH {
        let format = message.content_format()?;
        return payload::decode_paths(format, &message.payload).ok();
    }
    let segments = message.uri_path();
    let text: String = segments.map(|segment| format!("/{segment}")).collect();
    Some(vec![text.parse().ok()?])
}
