//! The message layer of CoAP towards a device (RFC 7252 section 4): what was heard before and is
//! answered the same, and how the device's own messages are answered.

use protocol::coap::code::Code;
use protocol::coap::dedup::{DedupWindow, Duplicate};
use protocol::coap::message::{Message, MessageId, MessageKind};

use crate::datagram::Datagram;
use crate::device::context::Context;
use crate::limits::OVERLOAD_MAX_AGE_S;
use crate::peer::Peer;

/// What was heard lately from a peer where the device is not, by what is known.
pub(super) struct OtherPeer {
    peer: Peer,
    recent: DedupWindow,
}

/// Deduplication and answers.
pub(super) struct Messages<'s> {
    /// What the device's peer sent lately, so that a repeated datagram is answered and not done
    /// again.
    recent: &'s mut DedupWindow,
    other_peer: &'s mut Option<Box<OtherPeer>>,
    /// Whether anything is remembered of where the device was before.
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

    /// The device is not idle, so that it is remembered what it said where it was before.
    pub(super) fn keep_other_peers(&mut self) {
        self.keeps_other_peers = true;
    }

    /// Answers a message that was answered already, without doing it again; says whether it was
    /// one (section 4.5).
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
            // The location it was answered with is gone, and no other message stands for it.
            Duplicate::Answered(Code::CREATED) if !cx.registration.is_registered() => {
                return true;
            }
            Duplicate::Answered(code) => response_to(cx, message, code),
            Duplicate::Acknowledged => Message::acknowledgement(message.message_id),
            Duplicate::Rejected => Message::reset(message.message_id),
        };
        cx.send(*peer, &answer);
        true
    }

    /// Answers a request and remembers that it was answered.
    pub(super) fn answer(&mut self, cx: &mut Context<'_>, datagram: &Datagram, code: Code) {
        self.remember(cx, datagram, Duplicate::Answered(code));
        let response = response_to(cx, &datagram.message, code);
        cx.send(datagram.peer, &response);
    }

    /// Answers that a body is too long, and how long it may be (RFC 7959 section 2.9.3).
    pub(super) fn refuse_length(&mut self, cx: &mut Context<'_>, datagram: &Datagram) {
        let code = Code::REQUEST_ENTITY_TOO_LARGE;
        self.remember(cx, datagram, Duplicate::Answered(code));
        let max = cx.rules().limits.data_bytes_max;
        let answer = response_to(cx, &datagram.message, code);
        let answer = answer.with_size1(u32::try_from(max).unwrap_or(u32::MAX));
        cx.send(datagram.peer, &answer);
    }

    /// Answers that the device comes too often. It is not remembered: it may try again.
    pub(super) fn put_off(cx: &mut Context<'_>, datagram: &Datagram) {
        let answer = response_to(cx, &datagram.message, Code::SERVICE_UNAVAILABLE);
        let answer = answer.with_max_age(OVERLOAD_MAX_AGE_S);
        cx.send(datagram.peer, &answer);
    }

    /// Acknowledges a message that was taken in, if its sender waits for that.
    pub(super) fn acknowledge(&mut self, cx: &mut Context<'_>, datagram: &Datagram) {
        let message = &datagram.message;
        let id = (message.kind == MessageKind::Confirmable).then_some(message.message_id);
        self.confirm(cx, datagram, id);
    }

    /// Takes note that an answer was taken in, and acknowledges it if its sender waits for that.
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

    /// Rejects a message nobody here can process: a confirmable one must be, and any other may
    /// be, so that a device stops sending notifications nobody asked for (RFC 7641 section 3.6).
    pub(super) fn reject(&mut self, cx: &mut Context<'_>, datagram: &Datagram) {
        self.remember(cx, datagram, Duplicate::Rejected);
        cx.send(datagram.peer, &Message::reset(datagram.message.message_id));
    }

    /// Remembers the last part of a whole as the whole is: it is the part that is repeated.
    pub(super) fn remember_alike(&mut self, cx: &Context<'_>, part: &Datagram, whole: &Datagram) {
        let now_ms = cx.now().as_ms();
        let recent = self.recent_of(cx, whole.peer);
        let remembered = recent.and_then(|it| it.find(now_ms, &whole.message));
        if let Some(remembered) = remembered {
            self.remember(cx, part, remembered);
        }
    }

    /// Makes room for what a peer said lately, so that it is answered the same when it repeats
    /// itself.
    pub(super) fn remember_other_peer(&mut self, cx: &Context<'_>, peer: Peer) {
        let is_known = self.other_peer.as_ref().is_some_and(|it| it.peer == peer);
        if cx.registration.peer() != Some(peer) && !is_known {
            let recent = DedupWindow::default();
            *self.other_peer = Some(Box::new(OtherPeer { peer, recent }));
        }
    }

    /// Forgets what was said from elsewhere.
    pub(super) fn forget_other_peer(&mut self) {
        *self.other_peer = None;
    }

    /// The device is at a peer. Message ids belong to an address: at a new one, nothing was heard
    /// yet but as a visitor's. Where the device was before it may still repeat itself.
    pub(super) fn move_to(&mut self, cx: &mut Context<'_>, peer: Peer) {
        let before = cx.registration.peer();
        if before == Some(peer) {
            // An association may be at another address by now.
            cx.registration.move_to(peer);
            return;
        }
        let recent = self.recent_of(cx, peer).map(std::mem::take);
        let recent = std::mem::replace(self.recent, recent.unwrap_or_default());
        cx.registration.move_to(peer);
        if self.keeps_other_peers {
            *self.other_peer = before.map(|peer| Box::new(OtherPeer { peer, recent }));
        }
    }

    /// What another than the device or a visitor says is not remembered.
    fn remember(&mut self, cx: &Context<'_>, datagram: &Datagram, what: Duplicate) {
        let now_ms = cx.now().as_ms();
        if let Some(recent) = self.recent_of(cx, datagram.peer) {
            recent.remember(now_ms, &datagram.message, what);
        }
    }

    /// What a peer said lately, if that is remembered.
    fn recent_of(&mut self, cx: &Context<'_>, peer: Peer) -> Option<&mut DedupWindow> {
        if cx.registration.peer() == Some(peer) {
            return Some(self.recent);
        }
        let other_peer = self.other_peer.as_mut()?;
        (other_peer.peer == peer).then_some(&mut other_peer.recent)
    }
}

fn response_to(cx: &mut Context<'_>, request: &Message, code: Code) -> Message {
    let response = Message::response_to(request, code, cx.message_id());
    // RFC 7959 section 2.3: the block that a success is about is named.
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
