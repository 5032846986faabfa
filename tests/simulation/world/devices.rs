//! What devices do, by themselves and when they receive datagrams.

use engine::peer::{Peer, Transport};
use harness::device::SimulatedDevice;
use harness::device::event::{DeviceEvent as News, DeviceOutput};
use harness::device::operation_log::PerformedOperation;
use harness::device::resource::{AnswerMode, FIRMWARE_PACKAGE, FIRMWARE_UPDATE, FIRMWARE_URI};
use harness::rng::Rng;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use super::plain::is_continue;
use super::{Activity, World};
use crate::event::Event;
use crate::fleet::DeviceProtocols;
use crate::laws::bootstrapping;
use crate::laws::campaigns::GivenImage;
use crate::settings::pick;
use crate::trace::TraceEvent;

/// The paths that callers request, each of which a device may answer in its own way.
const ASKED: [Path; 5] = [
    Path::resource(3303, 0, 5700),
    Path::resource(3, 0, 14),
    Path::resource(1, 0, 1),
    Path::resource(3, 0, 4),
    Path::resource(1, 0, 8),
];

/// The paths that a campaign requests.
const UPDATED: [Path; 2] = [FIRMWARE_URI, FIRMWARE_UPDATE];

impl World {
    pub(super) fn reach_device(&mut self, to: Peer, datagram: &[u8]) {
        if to.transport == Transport::Udp {
            return self.reach_bare(to, datagram);
        }
        if to.transport == Transport::Coaps {
            return self.record_reaches_device(to, datagram);
        }
        let Some(who) = self.fleet.who_is_at(to) else {
            self.reject_at(to, datagram);
            let port = Self::port_of(to);
            return self.note(TraceEvent::NobodyHears { port });
        };
        self.device_hears(who, datagram);
    }

    pub(super) fn device_hears(&mut self, who: usize, datagram: &[u8]) {
        self.note(TraceEvent::DeviceHears {
            who,
            datagram: datagram.into(),
        });
        self.drive(who, |device, now_ms, out| {
            device.handle_datagram(now_ms, datagram, out)
        });
    }

    pub(super) fn device_due(&mut self, who: usize) {
        let now_ms = self.now_ms;
        self.fleet
            .member_mut(who)
            .armed_at_ms
            .take_if(|armed_at_ms| *armed_at_ms <= now_ms);
        self.drive(who, SimulatedDevice::handle_timeout);
    }

    /// Lets a device act, sends its datagrams, and checks what it did.
    pub(crate) fn drive(
        &mut self,
        who: usize,
        act: impl FnOnce(&mut SimulatedDevice, i64, &mut Vec<DeviceOutput>),
    ) {
        let mut outputs = std::mem::take(&mut self.outputs);
        act(
            &mut self.fleet.member_mut(who).machine,
            self.now_ms,
            &mut outputs,
        );
        self.see_deeds(who);
        for output in outputs.drain(..) {
            match output {
                DeviceOutput::Send(datagram) => self.device_says(who, datagram),
                DeviceOutput::SendUdp(bytes) => self.device_throws(who, &bytes),
                DeviceOutput::Report(News::Rebooted) => self.fleet.member_mut(who).boot += 1,
                DeviceOutput::Report(news) => {
                    if news == News::Bootstrapped {
                        self.laws.bootstraps.finished(who);
                    }
                    self.census.count_news(&news);
                }
            }
        }
        self.outputs = outputs;
        self.arm(who);
        if self.activity == Activity::Healing {
            self.invite(who);
        }
    }

    /// A deregistered device is switched on again.
    fn invite(&mut self, who: usize) {
        let machine = &self.fleet.member(who).machine;
        let registers = self.fleet.member(who).speaks != DeviceProtocols::Plain;
        if registers && machine.location().is_none() && machine.next_timeout().is_none() {
            self.switch_on(who);
        }
    }

    fn see_deeds(&mut self, who: usize) {
        self.see_plain_performed(who);
        let member = self.fleet.member(who);
        let (boot, first, count) = (
            member.boot,
            member.performed_seen,
            member.machine.performed_count(),
        );
        if first == count {
            return;
        }
        let fresh = member.machine.performed().rev();
        let fresh = fresh.take_while(|performed| performed.number >= first);
        let mut fresh: Vec<&PerformedOperation> = fresh.collect();
        // A composite request makes a device perform several operations for one request.
        fresh.dedup_by_key(|performed| (performed.message_id, performed.token));
        let package = member.machine.value(FIRMWARE_PACKAGE);
        let given = match (package, member.machine.value(FIRMWARE_URI)) {
            (Some(Value::Opaque(bytes)), _) => GivenImage::Bytes(bytes),
            (_, Some(Value::String(uri))) => GivenImage::Uri(uri),
            (_, _) => GivenImage::Uri(""),
        };
        for performed in fresh {
            let verdict = self.laws.performed(who, boot, performed).and_then(|()| {
                let (device, durable) = (&member.machine, &self.disk.durable);
                bootstrapping::a_key_is_saved_before_it_is_written(
                    who, performed, device, durable,
                )?;
                let campaigns = &mut self.laws.campaigns;
                campaigns.performed(who, performed, &given, &self.disk.durable)
            });
            if let Err(breach) = verdict {
                self.fail(&breach);
            }
        }
        self.fleet.member_mut(who).performed_seen = count;
    }

    fn arm(&mut self, who: usize) {
        let member = self.fleet.member_mut(who);
        if let Some(at_ms) = member.machine.next_timeout()
            && member
                .armed_at_ms
                .is_none_or(|armed_at_ms| at_ms < armed_at_ms)
        {
            member.armed_at_ms = Some(at_ms);
            self.queue
                .push(at_ms.max(self.now_ms), Event::DeviceDue { who });
        }
    }

    pub(crate) fn device_says(&mut self, who: usize, datagram: Vec<u8>) {
        self.note(TraceEvent::DeviceSays {
            who,
            datagram: datagram.as_slice().into(),
        });
        let from = self.fleet.member(who).address;
        let of = self.fleet.member(who).of;
        self.laws.sent_notifications.receive((of, from), &datagram);
        let posts = self.fleet.member(who).posts.as_deref();
        self.laws.sent_data.receive(self.now_ms, &datagram, posts);
        self.census.blocks_down += u64::from(is_continue(&datagram));
        let samples = &self.fleet.member(who).sends;
        let sent = (self.now_ms, from);
        self.laws.sent_samples.receive(sent, &datagram, samples);
        if self.fleet.member(who).secured.is_some() {
            self.choose_key(who, &datagram);
            return self.device_seals(who, datagram);
        }
        self.travel(|| Event::ReachesService {
            from,
            datagram: datagram.clone(),
        });
    }

    /// A device does something, and the next act of a device is scheduled.
    pub(super) fn act_of_device(&mut self) {
        let at_ms = self.later_ms();
        self.queue.push(at_ms, Event::DeviceAction);
        match self.activity {
            Activity::Lively => {
                let who = self.anybody();
                self.act_randomly(who);
            }
            Activity::Healing => self.be_heard_again(),
            Activity::Still => {}
        }
    }

    pub(super) fn anybody(&mut self) -> usize {
        self.rng.below(self.settings.devices as u32) as usize
    }

    pub(super) fn act_randomly(&mut self, who: usize) {
        let who = self.some_socket_of(who);
        let says_plainly = match self.fleet.member(who).speaks {
            DeviceProtocols::Plain => 60,
            DeviceProtocols::Both | DeviceProtocols::Lwm2m => 8,
        };
        let says_plainly = match self.fleet.member(who).secured {
            Some(_) => 0,
            None => says_plainly,
        };
        if self.rng.hits(says_plainly) {
            return self.say_plainly(who);
        }
        if self.fleet.member(who).secured.is_some() && self.rng.hits(15) {
            return self.use_keys(who);
        }
        match self.rng.below(115) {
            100.. => self.send_something(who),
            0..25 => self.does(who, "updates", SimulatedDevice::update),
            25..35 => self.roam(who),
            35..39 => self.does(who, "is rebooted", SimulatedDevice::reboot),
            39..42 => self.switch_off(who),
            42..50 => self.switch_on(who),
            50..55 => self.does(who, "sleeps", SimulatedDevice::sleep),
            55..60 => self.does(who, "wakes", SimulatedDevice::wake),
            60..62 => self.does(who, "deregisters", SimulatedDevice::deregister),
            62 => self.does(who, "asks for its bootstrap", SimulatedDevice::bootstrap),
            63..75 => self.measure(who),
            75..95 => self.change_answer_mode(who),
            _ => self.make_noise(who),
        }
    }

    pub(crate) fn does(
        &mut self,
        who: usize,
        does: &'static str,
        act: impl FnOnce(&mut SimulatedDevice, i64, &mut Vec<DeviceOutput>),
    ) {
        self.note(TraceEvent::Device { who, does });
        self.drive(who, act);
    }

    pub(crate) fn switch_on(&mut self, who: usize) {
        self.does(who, "is switched on", SimulatedDevice::handle_start);
    }

    pub(crate) fn switch_off(&mut self, who: usize) {
        self.note(TraceEvent::Device {
            who,
            does: "is switched off",
        });
        let member = self.fleet.member_mut(who);
        member.boot += 1;
        member.machine.power_off();
        if let Some(client) = &mut member.secured {
            client.power_off();
        }
        member.downloads = None;
        self.forget_download(who);
    }

    pub(crate) fn roam(&mut self, who: usize) {
        self.note(TraceEvent::Device { who, does: "roams" });
        self.fleet.roam(who, &mut self.rng);
    }

    fn measure(&mut self, who: usize) {
        let number = self.rng.below(100_000);
        self.measures(who, ASKED[0], Value::Float(f64::from(number) / 8.0));
        self.measures(
            who,
            ASKED[1],
            Value::String(format!("what was measured is {number}")),
        );
    }

    /// A device has another value from now on, and notifies it if it is observed.
    pub(crate) fn measures(&mut self, who: usize, path: Path, value: Value) {
        self.fleet.member_mut(who).machine.set(path, value);
        self.arm(who);
    }

    /// From now on a device answers for one of its resources in another way.
    fn change_answer_mode(&mut self, who: usize) {
        let path = match self.rng.below(4) {
            0 => pick(&mut self.rng, UPDATED),
            _ => pick(&mut self.rng, ASKED),
        };
        let answer = answer_mode(&mut self.rng);
        self.answer_plainly(who, answer);
        self.answer_with(who, path, answer);
        self.change_update(who);
    }

    pub(crate) fn answer_with(&mut self, who: usize, path: Path, answer: AnswerMode) {
        self.fleet.member_mut(who).machine.answer_with(path, answer);
    }

    /// A device sends something that is no registration and no answer.
    fn make_noise(&mut self, who: usize) {
        let id = MessageId((self.rng.number() >> 48) as u16);
        let token = Token::from_u64(self.rng.number());
        let datagram = match self.rng.below(9) {
            6.. => super::plain::odd(id, token, &mut self.rng),
            0 => Message::ping(id).encode(),
            1 => Message::reset(id).encode(),
            2 => Message::separate(MessageKind::NonConfirmable, Code::CONTENT, id, token)
                .with_observe(7)
                .encode(),
            3 => Message::request(MessageKind::Confirmable, Code::POST, id, token)
                .with_uri_path(["dp"])
                .encode(),
            4 => Message::request(MessageKind::Confirmable, Code::POST, id, token)
                .with_uri_path(["rd"])
                .with_uri_query([format!("ep=device-{}", (who + 1) % self.settings.devices)])
                .with_uri_query(["lt=soon"])
                .encode(),
            _ => self.rng.number().to_be_bytes()[..self.rng.below(9) as usize].to_vec(),
        };
        self.device_says(who, datagram);
    }

    /// From now on a device behaves correctly.
    pub(super) fn cure(&mut self, who: usize) {
        for path in ASKED.into_iter().chain(UPDATED) {
            self.answer_with(who, path, AnswerMode::Piggybacked);
        }
        self.answer_plainly(who, AnswerMode::Piggybacked);
        self.switch_on(who);
        self.does(who, "updates", SimulatedDevice::update);
    }
}

fn answer_mode(rng: &mut Rng) -> AnswerMode {
    let after_ms = rng.below(7_000);
    match rng.below(16) {
        0..4 => AnswerMode::Piggybacked,
        4 | 5 => AnswerMode::SeparateConfirmable { after_ms },
        6 => AnswerMode::SeparateNonConfirmable { after_ms },
        7 => AnswerMode::NonConfirmable,
        8 => AnswerMode::AcknowledgeOnly,
        9 => AnswerMode::Silent,
        10 => AnswerMode::Reset,
        11 => AnswerMode::Code(Code::SERVICE_UNAVAILABLE),
        12 => AnswerMode::Code(Code::TOO_MANY_REQUESTS),
        _ => AnswerMode::Code(Code::INTERNAL_SERVER_ERROR),
    }
}
