//! What does the device send without LwM2M? Data over plain CoAP, and bare datagrams.

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};

use super::SimulatedDevice;
use super::event::{DeviceEvent, DeviceOutput};
use super::sending::Unsent;
use super::session::{Radio, RequestPurpose};
use super::uplink::next_ids;

impl SimulatedDevice {
    /// Posts data under a topic; a sleeping device wakes for it. A Confirmable message is
    /// retransmitted and reports its result later; a Non-confirmable one is sent once.
    pub fn tell(
        &mut self,
        now_ms: i64,
        kind: MessageKind,
        (topic, data): (&str, &[u8]),
        out: &mut Vec<DeviceOutput>,
    ) -> Result<(), Unsent> {
        self.rouse(now_ms, out)?;
        let wants_to_know = kind == MessageKind::Confirmable;
        let fits = data.len() <= self.configuration.block.bytes();
        if self.session.request.is_some() && (wants_to_know || !fits) {
            return Err(Unsent::Busy);
        }
        let (message_id, token) = next_ids(&mut self.session.message_ids, &mut self.rng);
        let request = Message::request(kind, Code::POST, message_id, token)
            .with_uri_query([format!("t={topic}")])
            .with_payload(data);
        if wants_to_know || !fits {
            self.ask(now_ms, RequestPurpose::Data, request, out);
        } else {
            self.session.quiet_since_ms = now_ms;
            out.push(DeviceOutput::Send(request.encode()));
        }
        Ok(())
    }

    /// Sends a bare datagram to the server; a sleeping device wakes for it.
    pub fn throw(
        &mut self,
        now_ms: i64,
        bytes: &[u8],
        out: &mut Vec<DeviceOutput>,
    ) -> Result<(), Unsent> {
        self.rouse(now_ms, out)?;
        self.session.quiet_since_ms = now_ms;
        out.push(DeviceOutput::SendUdp(bytes.to_vec()));
        Ok(())
    }

    /// Handles a bare datagram of the server, which is lost if the radio is off.
    pub fn handle_bare(&mut self, now_ms: i64, bytes: &[u8], out: &mut Vec<DeviceOutput>) {
        if self.session.radio == Radio::Awake {
            self.session.quiet_since_ms = now_ms;
            let bytes = bytes.to_vec();
            out.push(DeviceOutput::Report(DeviceEvent::HeardBare { bytes }));
        }
    }

    /// Wakes a sleeping device; one that is off stays off.
    pub(super) fn rouse(&mut self, now_ms: i64, out: &mut Vec<DeviceOutput>) -> Result<(), Unsent> {
        match self.session.radio {
            Radio::Off => return Err(Unsent::Off),
            Radio::Asleep => self.awaken(now_ms, out),
            Radio::Awake => {}
        }
        Ok(())
    }
}
