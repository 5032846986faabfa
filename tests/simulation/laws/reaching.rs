//! Laws about reachability: where datagrams to a device go, and when its waiting requests are sent.

use std::collections::{BTreeSet, HashMap};

use engine::action::{Action, Protocol, Status};
use engine::moment::Timestamp;
use engine::peer::{LocalAddressId, Peer, Transport};
use engine::step_event::UplinkKind;

use super::{Decision, LawChecker, OpenExchange, SentDatagram, Verdict, hold, leaving};
use crate::disk::Durable;
use crate::wire::Head;

/// Through which nodes the messages of peers were heard.
#[derive(Default)]
pub(crate) struct HearingNodes {
    by_message: HashMap<(Peer, u16), BTreeSet<Option<LocalAddressId>>>,
}

impl HearingNodes {
    /// A node has received a datagram. A message that cannot be read is answered, too.
    pub(crate) fn note(&mut self, from: Peer, datagram: &[u8]) {
        if let [_, _, high, low, ..] = *datagram {
            let message_id = u16::from_be_bytes([high, low]);
            let by_message = self.by_message.entry((from, message_id));
            by_message.or_default().insert(from.local);
        }
    }
}

/// The answer to a message without DTLS leaves through a node that heard the message: a NAT lets
/// nothing in from another one.
pub(super) fn an_answer_leaves_through_the_node_that_heard_its_message(
    laws: &LawChecker,
    outcome: &SentDatagram<'_>,
) -> Verdict {
    let to = outcome.to;
    let answer = Head::of(outcome.datagram).filter(Head::is_answer);
    let Some(answer) = answer.filter(|_| to.transport == Transport::Coap) else {
        return Ok(());
    };
    let heard = laws.heard_through.by_message.get(&(to, answer.message_id));
    hold(
        "an_answer_leaves_through_the_node_that_heard_its_message",
        heard.is_some_and(|heard| heard.contains(&to.local)),
        || {
            format!(
                "{answer:?} leaves for {to} through {:?}, and not {heard:?}",
                to.local
            )
        },
    )
}

/// A datagram to a device goes to the address its customer gave it, or to its peer.
pub(super) fn nothing_goes_to_another_address(
    laws: &LawChecker,
    outcome: &SentDatagram<'_>,
    durable: &Durable,
) -> Verdict {
    let (Some(who), ip) = (outcome.who, outcome.to.ip()) else {
        return Ok(());
    };
    if !outcome.is_asked {
        return Ok(());
    }
    let is_right = match durable.profile(who).ip {
        Some(own) => ip == own,
        None => {
            laws.routing.is_behind(who, outcome.to)
                || laws.bootstraps.is_at(who, outcome.to)
                || outcome.to.transport == Transport::Udp
        }
    };
    hold("nothing_goes_to_another_address", is_right, || {
        format!("device {who} is asked at {}", outcome.to)
    })
}

/// Whether a request could be sent at an instant: an address for it is known on the disk. The end
/// of a registration may come late; then it is over before the disk says so.
pub(super) fn has_a_way(
    laws: &LawChecker,
    (action, at): (&Action, Timestamp),
    who: usize,
    durable: &Durable,
) -> bool {
    let (own, record) = (durable.profile(who).ip, durable.record(who));
    let registration = record.registration.as_ref();
    let registered_at = registration.and(record.peer);
    if laws.awaits_session[who] && action.protocol() != Protocol::Udp {
        return false;
    }
    match action.protocol() {
        Protocol::Udp | Protocol::Coap => own.is_some() || registered_at.is_some(),
        Protocol::Lwm2m => {
            let lasts = registration.is_some_and(|it| it.expires_at > at);
            let is_at_home = |peer: Peer| own.is_none_or(|own| own == peer.ip());
            lasts && registered_at.is_some_and(is_at_home) && laws.routing.is_somewhere(who, own)
        }
    }
}

/// An uplink over any protocol releases the next request, unless an exchange with the device is
/// open or the device is being bootstrapped.
pub(super) fn any_uplink_releases_what_waits(
    laws: &LawChecker,
    decision: &Decision,
    durable: &Durable,
) -> Verdict {
    let who = decision.who;
    let is_data = matches!(
        decision.took.meaning,
        Some(UplinkKind::CoapData | UplinkKind::UdpData)
    );
    let own = durable.profile(who).ip;
    let is_own = decision
        .took
        .from
        .is_some_and(|from| own == Some(from.ip()));
    let is_over = |open: &OpenExchange| open.is_answered && !open.continues;
    let is_free = laws.open[who].as_ref().is_none_or(is_over)
        && !durable.pending(who).any(leaving::is_thrown);
    let asks = !decision.sends.is_empty() || decision.throws.is_some();
    let is_bootstrap = laws.bootstraps.is_under_way(who);
    if !is_data || !is_own || !is_free || is_bootstrap || asks {
        return Ok(());
    }
    let is_due = |action: &&Action| {
        action.status == Status::Scheduled
            && action.protocol() != Protocol::Lwm2m
            && action.expires_at.as_ms() > decision.at_ms
            && !action.is_deferred(Timestamp::from_ms(decision.at_ms))
    };
    let waits = durable.pending(who).find(is_due).map(|action| action.id);
    hold("any_uplink_releases_what_waits", waits.is_none(), || {
        format!("device {who} had an uplink, and {waits:?} still waits")
    })
}
