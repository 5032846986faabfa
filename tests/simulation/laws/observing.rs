//! Laws about observations: notified values are stored, and no observation ends silently.

use std::collections::{HashMap, HashSet};

use engine::action::{Action, Operation, Request, Status};
use engine::device::record::{Observation, ObservationState};
use engine::event::Lifecycle;
use engine::peer::Peer;
use protocol::coap::block::Block;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::observe::NewestNotification;
use protocol::lwm2m::path::Path;

use super::{LawChecker, Verdict, hold};
use crate::disk::{BatchSummary, Durable, plain};
use crate::wire::{AttemptKey, Head};

/// The notifications that devices sent.
#[derive(Default)]
pub(crate) struct SentNotifications {
    /// Everything that was sent under a token, in order.
    by_token: HashMap<Vec<u8>, Vec<SentNotification>>,
    /// The confirmable notifications, by peer and message id.
    confirmable: HashMap<(Peer, u16), Vec<NotificationId>>,
    /// The number of uplinks of a device when an observation of a path was last requested again.
    requested_again: HashMap<(usize, Path), u64>,
    /// The devices that notified a value in part.
    partly: HashSet<usize>,
}

/// One notification of an observed value.
struct SentNotification {
    sequence: u32,
    format: Option<ContentFormat>,
    payload: Vec<u8>,
    /// Whether its further blocks had to be requested.
    is_partial: bool,
}

impl SentNotification {
    /// The notified value of a path, in the bytes of plain devices.
    fn of(&self, path: Path) -> Vec<u8> {
        plain(self.format, path, &self.payload)
    }
}

/// Identifies a notification.
struct NotificationId {
    token: Vec<u8>,
    sequence: u32,
}

impl SentNotifications {
    /// A device sends a datagram.
    pub(crate) fn receive(&mut self, (who, from): (usize, Peer), datagram: &[u8]) {
        if !Head::of(datagram).is_some_and(|head| head.is_response()) {
            return;
        }
        let Ok(message) = Message::decode(datagram) else {
            return;
        };
        let Some(sequence) = message.observe() else {
            return;
        };
        let token = message.token.as_bytes();
        let notifications = self.by_token.entry(token.to_vec()).or_default();
        let is_repeated = |earlier: &SentNotification| {
            earlier.sequence == sequence && earlier.payload == message.payload
        };
        if notifications.iter().any(is_repeated) {
            return;
        }
        let is_partial = message.block2().is_some_and(Block::has_more);
        if is_partial {
            self.partly.insert(who);
        }
        notifications.push(SentNotification {
            sequence,
            is_partial,
            format: message.content_format(),
            payload: message.payload,
        });
        if message.kind == MessageKind::Confirmable {
            let name = (from, message.message_id.0);
            let named = self.confirmable.entry(name).or_default();
            named.push(NotificationId {
                token: token.to_vec(),
                sequence,
            });
        }
    }

    /// Whether this value was notified under the token of an attempt.
    pub(super) fn has_notified(&self, attempt: &AttemptKey, path: Path, payload: &[u8]) -> bool {
        let notifications = self.by_token.get(attempt.token());
        // The further blocks of a notification are requested separately.
        let is_it = |one: &SentNotification| one.is_partial || one.of(path) == payload;
        notifications.is_some_and(|notifications| notifications.iter().any(is_it))
    }

    /// Whether the device was heard since this observation was last requested again, which it is
    /// now.
    fn may_ask_again(&mut self, who: usize, path: Path, uplinks: u64) -> bool {
        let before = self.requested_again.insert((who, path), uplinks);
        before.is_none_or(|before| before < uplinks)
    }
}

/// An acknowledged notification is in the history of its device, unless a newer one is.
pub(super) fn what_is_acknowledged_is_stored(
    laws: &LawChecker,
    who: usize,
    to: Peer,
    message_id: u16,
    durable: &Durable,
) -> Verdict {
    let named = laws.sent_notifications.confirmable.get(&(to, message_id));
    let Some(named) = named else {
        return Ok(());
    };
    let is_told = |named: &NotificationId| {
        let observed = observed_as(&named.token, &durable.record(who).observations);
        let notifications = laws
            .sent_notifications
            .by_token
            .get(&named.token)
            .map(Vec::as_slice);
        let notifications = notifications.unwrap_or_default();
        observed.is_none_or(|observed| {
            is_published_or_outdated(
                path_of(observed),
                named.sequence,
                notifications,
                who,
                durable,
            )
        })
    };
    hold(
        "what_is_acknowledged_is_stored",
        named.iter().any(is_told),
        || format!("message {message_id} of device {who} is acknowledged and nowhere to be found"),
    )
}

fn is_published_or_outdated(
    path: Path,
    sequence: u32,
    notifications: &[SentNotification],
    who: usize,
    durable: &Durable,
) -> bool {
    let history = durable.history(who);
    let of_sequence = |sequence| NewestNotification::new(sequence, 0);
    let stands_for_it = |other: &&SentNotification| {
        let is_older = of_sequence(other.sequence).is_outdated_by(&of_sequence(sequence));
        // A notification in blocks was fetched separately; what is published is the value at that
        // time.
        !is_older && (other.is_partial || history.has_published(path, &other.of(path)))
    };
    notifications.iter().any(|one| stands_for_it(&one)) && history.last_in(path).is_some()
}

/// An observation is requested again only if the disk says that the device lost it, and under a new
/// token.
pub(super) fn an_observation_requested_again_was_lost(
    who: usize,
    attempt: &AttemptKey,
    path: Option<Path>,
    durable: &Durable,
) -> Verdict {
    let observations = &durable.record(who).observations;
    let is_owed = |observed: &Observation| {
        observed.target.path() == path && observed.state == ObservationState::Owed
    };
    let is_right =
        observations.iter().any(is_owed) && observed_as(attempt.token(), observations).is_none();
    hold("an_observation_requested_again_was_lost", is_right, || {
        format!("device {who} is asked for {path:?} by {attempt:?}, and observed: {observations:?}")
    })
}

/// Further blocks of a notification are requested only if the path is observed and the device
/// notified a part.
pub(super) fn fetched_blocks_belong_to_a_partial_notification(
    laws: &LawChecker,
    who: usize,
    path: Option<Path>,
    durable: &Durable,
) -> Verdict {
    let mut observed = durable.record(who).observations.iter();
    let is_observed = observed.any(|observed| observed.target.path() == path);
    let is_right = is_observed && laws.sent_notifications.partly.contains(&who);
    hold(
        "fetched_blocks_belong_to_a_partial_notification",
        is_right,
        || format!("device {who} is asked for the rest of {path:?}"),
    )
}

/// Between two requests to establish the same observation the device is heard.
pub(super) fn a_renewed_observation_waits_for_an_uplink(
    laws: &mut LawChecker,
    who: usize,
    path: Option<Path>,
) -> Verdict {
    let uplinks = laws.uplinks[who].uplinks;
    let sent_notifications = &mut laws.sent_notifications;
    let may = path.is_some_and(|path| sent_notifications.may_ask_again(who, path, uplinks));
    hold("a_renewed_observation_waits_for_an_uplink", may, || {
        format!("device {who} is requested again to observe {path:?} without an uplink")
    })
}

/// The observations of a device that registers or deregisters have to be established again.
pub(super) fn a_registration_or_deregistration_loses_observations(
    who: usize,
    done: &BatchSummary,
    durable: &Durable,
) -> Verdict {
    let mut observed = durable.record(who).observations.iter();
    let held = observed.find(|observed| observed.state == ObservationState::Held);
    let is_owed = !done.came_or_went || held.is_none();
    hold(
        "a_registration_or_deregistration_loses_observations",
        is_owed,
        || format!("device {who} registered or deregistered and is recorded to hold {held:?}"),
    )
}

/// An established observation keeps its token, and an observation ends by a request or with an
/// entry in the log.
pub(super) fn no_observation_ends_silently(
    who: usize,
    done: &BatchSummary,
    durable: &Durable,
) -> Verdict {
    let law = "no_observation_ends_silently";
    let now = &durable.record(who).observations;
    for before in done.observed_before.iter().flatten() {
        let path = path_of(before);
        let current = now.iter().find(|current| current.target == before.target);
        let is_explained = done.ended.contains(&path) || done.lost.contains(&path);
        hold(law, current.is_some() || is_explained, || {
            format!("{path} of device {who} is not observed any more, and nobody knows why")
        })?;
        let was_held = before.state == ObservationState::Held;
        let has_its_token =
            current.is_none_or(|current| current.token == before.token || !was_held);
        hold(law, has_its_token, || {
            format!("{path} of device {who} is observed under another token")
        })?;
    }
    let is_still_there = |path: &&Path| now.iter().any(|current| path_of(current) == **path);
    let lost_and_kept = done.lost.iter().find(is_still_there);
    hold(law, lost_and_kept.is_none(), || {
        format!("{lost_and_kept:?} of device {who} is logged as lost and is observed")
    })
}

/// An observation that a request began is established, and one that a request ended is gone.
pub(super) fn observations_are_those_that_were_requested(
    who: usize,
    action: &Action,
    durable: &Durable,
) -> Verdict {
    let Request::Lwm2m(request) = &action.request else {
        return Ok(());
    };
    let observations = &durable.record(who).observations;
    let address = request.address();
    let found = observations
        .iter()
        .find(|found| found.target.path() == address);
    let is_held = found.is_some_and(|found| found.state == ObservationState::Held);
    let is_right = match request.operation() {
        Operation::ObserveStart => is_held,
        Operation::ObserveEnd => found.is_none(),
        Operation::Read
        | Operation::Write
        | Operation::Execute
        | Operation::Discover
        | Operation::Create
        | Operation::Delete
        | Operation::WriteAttributes
        | Operation::WriteInstance
        | Operation::ReadComposite
        | Operation::WriteComposite
        | Operation::ObserveCompositeStart
        | Operation::ObserveCompositeEnd => true,
    };
    let is_done = action.status == Status::Succeeded;
    hold(
        "observations_are_those_that_were_requested",
        is_right || !is_done,
        || format!("{} succeeded, and {found:?} is observed", action.id),
    )
}

/// The last event of a registration in a history is its begin if the device is registered, and a
/// deregistration or expiry if it no longer is.
pub(super) fn a_history_ends_with_the_state_of_the_registration(
    who: usize,
    durable: &Durable,
) -> Verdict {
    let is_registered = durable.record(who).registration.is_some();
    let last = durable.history(who).presence().registration();
    let is_recorded = is_registered == (last == Some(Lifecycle::Registered));
    hold(
        "a_history_ends_with_the_state_of_the_registration",
        is_recorded,
        || format!("device {who}: registered {is_registered}, and {last:?}"),
    )
}

fn observed_as<'a>(token: &[u8], observations: &'a [Observation]) -> Option<&'a Observation> {
    observations
        .iter()
        .find(|observed| observed.token == *token)
}

/// The path of an observation: callers of the simulation observe one at a time.
fn path_of(observation: &Observation) -> Path {
    observation.target.path().expect("it is of one path")
}
