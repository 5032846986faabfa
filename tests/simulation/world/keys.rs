//! The keys of devices with DTLS: who sets and issues them, when a device uses them, also for a
//! session of its downloads, and who else has those that ended.

use engine::directory::credentials::with_psk;
use engine::firmware::image_key::ImageKey;
use engine::ids::CampaignId;
use engine::moment::Timestamp;
use engine::sealed::Sealed;
use harness::device::SimulatedDevice;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::bootstrap::SECURITY_OBJECT;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use super::World;
use crate::secured::{ClientRole, FormerKey, SecuredClient};
use crate::trace::TraceEvent;

/// How many accounts a device may have.
const ACCOUNTS: u16 = 4;

impl World {
    /// Something happens to the keys of a device, or it downloads.
    pub(super) fn use_keys(&mut self, who: usize) {
        match self.rng.below(6) {
            0 => self.set_key(who),
            1 => self.give_key(who),
            2 | 3 => self.request_image(who),
            _ => self.try_ended_key(who),
        }
    }

    /// The customer sets another key, unless the device has not used the last one: a device cannot
    /// be given two keys at a time.
    pub(crate) fn set_key(&mut self, who: usize) {
        let profile = self.disk.durable.profile(who);
        let psk = profile.credentials.psk.as_ref();
        let is_used = psk.is_some_and(|psk| psk.previous.is_none());
        let is_given = self.fleet.member(who).next_key.is_none();
        if !self.service.is_up() || !self.disk.durable.exists(who) || !is_used || !is_given {
            return;
        }
        let key: Box<[u8]> = [self.rng.number(), self.rng.number()]
            .map(u64::to_be_bytes)
            .concat()
            .into();
        let sealed = Sealed::from_bytes(key.clone());
        let is = with_psk(profile, None, sealed, Timestamp::from_ms(self.now_ms));
        self.disk.durable.rekey(who, is);
        self.fleet.member_mut(who).next_key = Some(key);
        let does = "has another key at the service";
        self.note(TraceEvent::Device { who, does });
    }

    /// A device is given the key that its customer set.
    pub(crate) fn give_key(&mut self, who: usize) {
        let member = self.fleet.member_mut(who);
        let Some(key) = member.next_key.take() else {
            return;
        };
        let before = std::mem::replace(&mut member.set_key, key.clone());
        let used = member.secured.as_ref().map(SecuredClient::key);
        if used == Some(&before) {
            member.use_key(&key);
        }
        let does = "is given its key";
        self.note(TraceEvent::Device { who, does });
    }

    /// A device asks for its bootstrap with the key that its customer set, and registers with that
    /// of its account, if it has one. Everything else goes over the session that it has.
    pub(super) fn choose_key(&mut self, who: usize, datagram: &[u8]) {
        let Ok(message) = Message::decode(datagram) else {
            return;
        };
        let path: Vec<&str> = message.uri_path().collect();
        let is_request = message.code.is_request();
        let member = self.fleet.member_mut(who);
        let key = match &path[..] {
            ["bs"] if is_request => member.set_key.clone(),
            ["rd"] if is_request => {
                let issued = key_of_account(&member.machine);
                issued.map_or_else(|| member.set_key.clone(), Into::into)
            }
            _ => return,
        };
        member.use_key(&key);
    }

    /// A device that cannot register with its account asks for another one (LwM2M Core 1.1.1
    /// section
    /// 6.1.7.1).
    pub(super) fn handshake_failed(&mut self, who: usize) {
        let member = self.fleet.member(who);
        let used = member.secured.as_ref().map(SecuredClient::key);
        if used.is_some_and(|used| *used != *member.set_key) {
            self.does(who, "asks for its bootstrap", SimulatedDevice::bootstrap);
        }
    }

    /// A key of a device is not valid any more: the device may have given it away, with its ticket.
    pub(super) fn key_ended(&mut self, who: usize, key: &Sealed) {
        self.census.keys_ended += 1;
        let member = self.fleet.member_mut(who);
        let is_it = |former: &FormerKey| *former.key == *key.as_bytes();
        let used = member.former_keys.iter().rfind(|former| is_it(former));
        let former = used.cloned().unwrap_or_else(|| FormerKey {
            key: key.as_bytes().into(),
            resumption: None,
        });
        member.former_keys.retain(|former| !is_it(former));
        member.ended_keys.push(former);
        let does = "has one key less at the service";
        self.note(TraceEvent::Device { who, does });
    }

    /// Somebody tries a key of a device that has ended.
    pub(crate) fn try_ended_key(&mut self, who: usize) {
        let keys = self.fleet.member(who).ended_keys.len();
        if keys == 0 {
            return;
        }
        let place = self.rng.below(keys as u32) as usize;
        let has_ticket = self.rng.hits(50);
        let id = MessageId(self.rng.number() as u16);
        let token = Token::from_u64(self.rng.number());
        let message = Message::request(MessageKind::Confirmable, Code::POST, id, token)
            .with_uri_path(["rd"])
            .with_uri_query([format!("ep=device-{who}").as_str(), "lwm2m=1.1", "lt=600"])
            .encode();
        self.census.ended_keys_tried += 1;
        let member = self.fleet.member_mut(who);
        let former = match has_ticket {
            true => member.ended_keys[place].clone(),
            false => FormerKey {
                resumption: None,
                ..member.ended_keys[place].clone()
            },
        };
        let client = member.secured.as_ref();
        member.impostor = client.map(|client| client.with(former));
        let impostor = (who, ClientRole::Impostor);
        self.let_client(impostor, |client, m, out| client.say(m, message, out));
    }

    /// A device requests an image over another session, from another port. It may also request one
    /// that it is not offered.
    pub(crate) fn request_image(&mut self, who: usize) {
        let [id, token, place] = [(); 3].map(|()| self.rng.number());
        let begins_anew = self.rng.hits(20);
        let token = Token::from_u64(token);
        let campaign = CampaignId::from_bytes([7; 16]);
        let key = ImageKey::of(&[1; 16], place as u32);
        let message = Message::request(
            MessageKind::Confirmable,
            Code::GET,
            MessageId(id as u16),
            token,
        )
        .with_uri_path(["firmware", &campaign.to_string(), &key.to_string()])
        .encode();
        let member = self.fleet.member_mut(who);
        let Some(client) = &member.secured else {
            return;
        };
        if begins_anew || member.downloads.is_none() {
            let (key, resumption) = (client.key().into(), None);
            member.downloads = Some(client.with(FormerKey { key, resumption }));
        }
        member.downloading.insert(token);
        let does = "requests an image";
        self.note(TraceEvent::Device { who, does });
        self.laws.sealed.said(who, &message);
        let downloads = (who, ClientRole::Downloads);
        self.let_client(downloads, |client, m, out| client.say(m, message, out));
    }
}

/// The key of the account that a bootstrap gave a device for this service.
fn key_of_account(device: &SimulatedDevice) -> Option<&[u8]> {
    let value = |instance, id| device.value(Path::resource(SECURITY_OBJECT, instance, id));
    let is_own = |instance: &u16| value(*instance, 1) == Some(&Value::Boolean(false));
    match value((0..ACCOUNTS).find(is_own)?, 5) {
        Some(Value::Opaque(key)) => Some(key),
        Some(_) | None => None,
    }
}
