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
    /// counts, so there are no more than there are observations.
    pub(super) fn put_by(&mut self, datagram: &Datagram) {
        let notified = &mut self.busy.get_or_insert_default().notified;
        notified.retain(|other| other.message.token != datagram.message.token);
        notified.push(datagram.clone());
    }

    /// Which notification is to be fetched next.
    pub(super) fn next_notification(&self) -> Option<Token> {
        let first = self.busy.as_ref()?.notified.first()?;
        Some(first.message.token)
    }

    /// Asks for the whole of what a notification tells.
    pub(super) fn begin_fetch(&mut self, m: &mut Moment, token: Token, out: &mut Effects) {
        let format = self
            .notified_as(token)
            .and_then(|datagram| datagram.message.content_format());
        let Some(path) = self.path_observed_as(token) else {
            self.take_notified(token);
            return;
        };
        let label = Label {
            message_id: self.take_message_id(),
            token: self.draw_token(m),
        };
        let message = operation::read(label, self.root(), path, format);
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
        if let Some(part) = self.take_notified(token) {
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
        if let Some(datagram) = self.take_notified(token) {
            out.note(None, What::Notified(News::Unusable));
            let why = format!("the rest of a notification could not be fetched: {why}");
            self.keep_unreadable(m, &why, &datagram.message.payload, out);
        }
    }

    fn notified_as(&self, token: Token) -> Option<&Datagram> {
        let notified = &self.busy.as_ref()?.notified;
        notified.iter().find(|it| it.message.token == token)
    }

    fn take_notified(&mut self, token: Token) -> Option<Datagram> {
        let notified = &mut self.busy.as_mut()?.notified;
        let index = notified.iter().position(|it| it.message.token == token)?;
        Some(notified.remove(index))
    }
}
