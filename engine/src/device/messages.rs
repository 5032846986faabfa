//! The message layer of CoAP towards a device (RFC 7252 section 4): deduplication, and how the
//! device's own messages are answered.

use protocol::coap::code::Code;
use protocol::coap::dedup::{DedupWindow, Duplicate, MessageMark};
use protocol::coap::message::{Message, MessageId, MessageKind};

use crate::datagram::Datagram;
use crate::device::context::Context;
use crate::diagnostic::{self, Recipient};
use crate::ids::{DeviceKey, EventId};
use crate::limits::OVERLOAD_MAX_AGE_S;
use crate::moment::Timestamp;
use crate::peer::Peer;

/// Recent messages from a peer other than the device's own.
pub(super) struct OtherPeer {
    peer: Peer,
    recent: DedupWindow,
}

/// Deduplication and answers.
pub(super) struct Messages<'s> {
    /// Recent messages from the device's peer: a repeated datagram is answered, and not handled
    /// again.
    recent: &'s mut DedupWindow,
    other_peer: &'s mut Option<Box<OtherPeer>>,
    /// Whether recent messages from the device's previous peer are remembered.
    keeps_other_peers: bool,
}

impl<'s> Messages<'s> {
    pub(super) fn new(
        recent: &'s mut DedupWindow,
        other_peer: &'s mut Option<Box<OtherPeer>>,
    ) -> Self {
        Self {
            recent,
            other_peer,
            keeps_other_peers: false,
        }
    }

    /// Remembers recent messages from the device's previous peer: the device is not idle.
    pub(super) fn keep_other_peers(&mut self) {
        self.keeps_other_peers = true;
    }

    /// Answers a message that was answered before, without handling it again. Returns whether it
    /// was one (section 4.5).
    pub(super) fn repeat(&mut self, cx: &mut Context<'_>, datagram: &Datagram) -> bool {
        let Datagram { peer, message, .. } = datagram;
        let now_ms = cx.now().as_ms();
        let recent = self.recent_of(cx, *peer);
        let Some(remembered) = recent.and_then(|it| it.find(now_ms, message)) else {
            return false;
        };
        if message.kind != MessageKind::Confirmable {
            return true;
        }
        let answer = match remembered {
            // The location in that answer no longer exists, and there is no other answer to give.
            Duplicate::Answered(Code::CREATED) if !cx.registration.is_registered() => {
                return true;
            }
            Duplicate::Answered(code) if code.is_success() => response_to(cx, message, code),
            Duplicate::Answered(code) => error_to(cx, datagram, code, diagnostic::REFUSED_BEFORE),
            Duplicate::Acknowledged => Message::acknowledgement(message.message_id),
            Duplicate::Rejected => Message::reset(message.message_id),
        };
        cx.send(*peer, &answer);
        true
    }

    /// Whether the data of a request were stored before the device was restored. The answer to it
    /// may have been lost with the process.
    pub(super) fn was_stored(&self, cx: &Context<'_>, datagram: &Datagram) -> bool {
        let (now_ms, endpoint) = (cx.now().as_ms(), datagram.peer.lasting_bytes());
        self.recent.was_stored(now_ms, &datagram.message, &endpoint)
    }

    /// Answers a request and remembers the answer.
    pub(super) fn answer(&mut self, cx: &mut Context<'_>, datagram: &Datagram, code: Code) {
        self.remember(cx, datagram, Duplicate::Answered(code));
        let response = response_to(cx, &datagram.message, code);
        cx.send(datagram.peer, &response);
    }

    /// Answers a request with an error and the reason, and remembers the answer.
    ///
    /// A Non-confirmable request of a stranger is not answered, like one for which there is no
    /// device: a stranger does not learn from it which devices exist.
    pub(super) fn refuse(
        &mut self,
        cx: &mut Context<'_>,
        datagram: &Datagram,
        (code, text): (Code, &str),
    ) {
        self.remember(cx, datagram, Duplicate::Answered(code));
        let is_confirmable = datagram.message.kind == MessageKind::Confirmable;
        if is_confirmable || recipient_of(cx, datagram) == Recipient::Device {
            let answer = error_to(cx, datagram, code, text);
            cx.send(datagram.peer, &answer);
        }
    }

    /// Answers that a body is too long, with the maximum size (RFC 7959 section 2.9.3).
    pub(super) fn refuse_length(&mut self, cx: &mut Context<'_>, datagram: &Datagram, text: &str) {
        let code = Code::REQUEST_ENTITY_TOO_LARGE;
        self.remember(cx, datagram, Duplicate::Answered(code));
        let max = cx.rules().limits.data_bytes_max;
        let answer = error_to(cx, datagram, code, text);
        let answer = answer.with_size1(u32::try_from(max).unwrap_or(u32::MAX));
        cx.send(datagram.peer, &answer);
    }

    /// Answers that the device sends too often. The answer is not remembered: the device may try
    /// again.
    pub(super) fn put_off(cx: &mut Context<'_>, datagram: &Datagram) {
        let code = Code::SERVICE_UNAVAILABLE;
        let answer = error_to(cx, datagram, code, diagnostic::TOO_OFTEN);
        let answer = answer.with_max_age(OVERLOAD_MAX_AGE_S);
        cx.send(datagram.peer, &answer);
    }

    /// Acknowledges a message if it is confirmable.
    pub(super) fn acknowledge(&mut self, cx: &mut Context<'_>, datagram: &Datagram) {
        let message = &datagram.message;
        let id = (message.kind == MessageKind::Confirmable).then_some(message.message_id);
        self.confirm(cx, datagram, id);
    }

    /// Remembers an answer, and acknowledges it if it is confirmable.
    pub(super) fn confirm(
        &mut self,
        cx: &mut Context<'_>,
        datagram: &Datagram,
        acknowledge: Option<MessageId>,
    ) {
        self.remember(cx, datagram, Duplicate::Acknowledged);
        if let Some(id) = acknowledge {
            cx.send(datagram.peer, &Message::acknowledgement(id));
        }
    }

    /// Rejects a message that cannot be processed. A confirmable message must be rejected; any
    /// other may be, so that a device stops sending notifications that were not requested (RFC 7641
    /// section 3.6).
    pub(super) fn reject(&mut self, cx: &mut Context<'_>, datagram: &Datagram) {
        self.remember(cx, datagram, Duplicate::Rejected);
        cx.send(datagram.peer, &Message::reset(datagram.message.message_id));
    }

    /// Remembers for the last block the answer to the whole body: it is the block that may be
    /// repeated.
    pub(super) fn remember_alike(&mut self, cx: &Context<'_>, part: &Datagram, whole: &Datagram) {
        let now_ms = cx.now().as_ms();
        let recent = self.recent_of(cx, whole.peer);
        let remembered = recent.and_then(|it| it.find(now_ms, &whole.message));
        if let Some(remembered) = remembered {
            self.remember(cx, part, remembered);
        }
    }

    /// Starts to remember recent messages from a peer, so that a repeated one gets the same answer.
    pub(super) fn remember_other_peer(&mut self, cx: &Context<'_>, peer: Peer) {
        let is_known = self.other_peer.as_ref().is_some_and(|it| it.peer == peer);
        if cx.registration.peer() != Some(peer) && !is_known {
            let recent = DedupWindow::default();
            *self.other_peer = Some(Box::new(OtherPeer { peer, recent }));
        }
    }

    /// Forgets recent messages from any other peer.
    pub(super) fn forget_other_peer(&mut self) {
        *self.other_peer = None;
    }

    /// The device is at a peer. Message ids belong to an address, so a new peer begins without
    /// recent messages, apart from those remembered as another peer's. The device may still repeat
    /// messages from its previous address.
    pub(super) fn move_to(&mut self, cx: &mut Context<'_>, peer: Peer) {
        let previous = cx.registration.peer();
        if previous == Some(peer) {
            // An association may have a new address.
            cx.registration.move_to(peer);
            return;
        }
        let recent = self.recent_of(cx, peer).map(std::mem::take);
        let recent = std::mem::replace(self.recent, recent.unwrap_or_default());
        // A mark has the peer that it is for.
        self.recent.adopt_stored(cx.now().as_ms(), &recent);
        cx.registration.move_to(peer);
        if self.keeps_other_peers {
            *self.other_peer = previous.map(|peer| Box::new(OtherPeer { peer, recent }));
        }
    }

    /// Only messages from the device's peer and the one other peer are remembered.
    fn remember(&mut self, cx: &Context<'_>, datagram: &Datagram, what: Duplicate) {
        let now_ms = cx.now().as_ms();
        if let Some(recent) = self.recent_of(cx, datagram.peer) {
            recent.remember(now_ms, &datagram.message, what);
        }
    }

    /// Recent messages from a peer, if they are remembered.
    fn recent_of(&mut self, cx: &Context<'_>, peer: Peer) -> Option<&mut DedupWindow> {
        if cx.registration.peer() == Some(peer) {
            return Some(self.recent);
        }
        let other_peer = self.other_peer.as_mut()?;
        (other_peer.peer == peer).then_some(&mut other_peer.recent)
    }
}

/// The recent messages of a restored device, as far as the ids of its last events name them.
pub(super) fn restored(now: Timestamp, device: DeviceKey, last: &[EventId]) -> DedupWindow {
    let mut recent = DedupWindow::default();
    for event in last {
        let mark = event.message_mark(device);
        recent.restore(now.as_ms(), event.made_at().as_ms(), mark);
    }
    recent
}

/// The mark by which a message is recognised after a restart.
pub(super) fn mark_of(datagram: &Datagram) -> MessageMark {
    MessageMark::of(&datagram.message, &datagram.peer.lasting_bytes())
}

/// An error response with a diagnostic text.
fn error_to(cx: &mut Context<'_>, datagram: &Datagram, code: Code, text: &str) -> Message {
    let response = response_to(cx, &datagram.message, code);
    let to = (&datagram.message, recipient_of(cx, datagram));
    diagnostic::with_text(response, text, to)
}

fn recipient_of(cx: &Context<'_>, datagram: &Datagram) -> Recipient {
    match cx.reachability().is_home(datagram.peer) {
        true => Recipient::Device,
        false => Recipient::Stranger,
    }
}

fn response_to(cx: &mut Context<'_>, request: &Message, code: Code) -> Message {
    let response = Message::response_to(request, code, cx.message_id());
    // RFC 7959 section 2.3: a success names the block it is about.
    let response = match request.block1() {
        Some(block) if code.is_success() => response.with_block1(block),
        Some(_) | None => response,
    };
    match cx.registration.location() {
        Some(location) if code == Code::CREATED => {
            response.with_location_path(["rd", &location.to_string()])
        }
        Some(_) | None => response,
    }
}
