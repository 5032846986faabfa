//! A notification that goes on in further blocks: the device is asked for all of the value, which
//! is told, and the notification acknowledged, once it is there (RFC 7959 section 2.6).

use protocol::coap::message::Message;
use protocol::coap::option;
use protocol::coap::token::Token;
use protocol::lwm2m::operation::{self, Label};

use crate::datagram::Datagram;
use crate::device::Device;
use crate::device::attempt::Target;
use crate::effect::Effects;
use crate::moment::Moment;
use crate::occurrence::{News, What};

impl Device {
    /// Keeps a notification until all of its value is there. Of each observation the newest one
    /// counts, and the one being fetched: what comes for that may be older than the newest.
    pub(super) fn put_by(&mut self, datagram: &Datagram) {
        let busy = self.busy.get_or_insert_default();
        let is_it = |fetched: &Datagram| {
            let (it, other) = (&fetched.message, &datagram.message);
            (it.token, it.message_id) == (other.token, other.message_id)
        };
        if busy.fetched.as_deref().is_some_and(is_it) {
            return;
        }
        let notified = &mut busy.notified;
        notified.retain(|other| other.message.token != datagram.message.token);
        notified.push(datagram.clone());
    }

    /// Which notification is to be fetched next.
    pub(super) fn next_notification(&mut self) -> Option<Datagram> {
        let notified = &mut self.busy.as_mut()?.notified;
        (!notified.is_empty()).then(|| notified.remove(0))
    }

    /// Asks for the whole of what a notification tells.
    pub(super) fn begin_fetch(&mut self, m: &mut Moment, datagram: Datagram, out: &mut Effects) {
        let token = datagram.message.token;
        let Some(path) = self.path_observed_as(token) else {
            return;
        };
        let label = Label {
            message_id: self.take_message_id(),
            token: self.draw_token(m),
        };
        let format = datagram.message.content_format();
        let message = operation::read(label, self.root(), path, format);
        self.busy.get_or_insert_default().fetched = Some(Box::new(datagram));
        self.begin_exchange(m, (Target::Notification(token), None), (None, message), out);
    }

    /// Takes the notification as if it had come whole.
    pub(super) fn notification_fetched(
        &mut self,
        m: &mut Moment,
        token: Token,
        answer: &Message,
        out: &mut Effects,
    ) {
        if let Some(part) = self.take_fetched(token) {
            let message = part.message.clone();
            let message = message
                .without_option(option::BLOCK2)
                .without_option(option::SIZE2)
                .with_payload(answer.payload.as_slice());
            let peer = part.peer;
            let whole = Datagram { peer, message };
            self.take_notification(m, &whole, out);
            self.remember_alike(m, &part, &whole);
        }
    }

    /// Gives a notification up. It is not acknowledged: a confirmable one comes again.
    pub(super) fn notification_missed(
        &mut self,
        m: &mut Moment,
        token: Token,
        why: &str,
        out: &mut Effects,
    ) {
        if let Some(datagram) = self.take_fetched(token) {
            out.note(None, What::Notified(News::Unusable));
            let why = format!("the rest of a notification could not be fetched: {why}");
            self.keep_unreadable(m, &why, &datagram.message.payload, out);
        }
    }

    fn take_fetched(&mut self, token: Token) -> Option<Box<Datagram>> {
        let fetched = &mut self.busy.as_mut()?.fetched;
        fetched.take_if(|fetched| fetched.message.token == token)
    }
}
