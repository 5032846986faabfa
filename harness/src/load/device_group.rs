//! What do very many devices send next, and how do they handle answers? The machine of a load: no
//! socket, no clock, and a few bytes per device.
//!
//! ```text
//!   idle ---- request is due, leaves ----> under way ---- answer, Reset, last timeout ----> idle
//!                                             |  ^
//!                                             +--+ timeout: the same datagram again
//! ```
//! A device has one request in progress (NSTART of RFC 7252 section 4.7); its turn comes again
//! when all others had theirs. Devices in queue mode sleep meanwhile, and wake for their turn.

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};

use super::addressing::DeviceRange;
use super::arrivals::{ArrivalSchedule, ArrivalShare};
use super::behaviour::{DeviceBehaviour, Recording, SessionUse};
use super::datagram::{self, Binding};
use super::deadlines::Deadlines;
use super::exchange::{ExchangeDue, LoadExchange};
use super::locations::{LocationRef, Locations};
use super::outbox::Outbox;
use super::request_mix::{LoadRequest, RequestMix};
use super::sleep_cycle::{SleepCycle, SleepDue};
use super::tally::{LATE_NS, LoadFailure, NumberedSend, TaskTally};
use crate::rng::Rng;

/// Requests that leave before incoming datagrams are read again: enough to be sent in few calls,
/// few enough that answers do not wait.
const BURST: usize = 64;

/// What the devices do.
#[derive(Clone, Debug)]
pub(super) enum LoadTask {
    /// Each registers once, on this schedule.
    Register(ArrivalSchedule),
    /// Each registers, and tries again until it is registered.
    Return(ArrivalSchedule),
    /// One after the other sends one of these requests, again and again.
    Repeat(RequestMix, ArrivalSchedule),
    /// They answer requests of the server, and wake and sleep.
    Listen,
}

impl LoadTask {
    fn schedule(&self) -> Option<&ArrivalSchedule> {
        match self {
            Self::Register(schedule) | Self::Return(schedule) | Self::Repeat(_, schedule) => {
                Some(schedule)
            }
            Self::Listen => None,
        }
    }

    fn schedule_mut(&mut self) -> Option<&mut ArrivalSchedule> {
        match self {
            Self::Register(schedule) | Self::Return(schedule) | Self::Repeat(_, schedule) => {
                Some(schedule)
            }
            Self::Listen => None,
        }
    }
}

/// A large number of devices.
pub(super) struct DeviceGroup {
    behaviour: DeviceBehaviour,
    // The number of the first device; the others follow.
    first: u32,
    members: Vec<GroupMember>,
    registered: u32,
    locations: Locations,
    exchanges: Vec<Option<LoadExchange>>,
    free_places: Vec<u32>,
    deadlines: Deadlines,
    sleep: Option<SleepCycle>,
    task: LoadTask,
    until_ns: u64,
    is_ending: bool,
    cursor: usize,
    // The number of its next Send; groups take turns.
    next_send: u32,
    groups: u32,
    rng: Rng,
    tally: TaskTally,
}

/// The state of a device.
#[derive(Clone, Copy, Debug)]
struct GroupMember {
    location: LocationRef,
    // The slot of its request; NOWHERE if it has none in progress.
    place: u32,
    next_id: u16,
}

const NOWHERE: u32 = u32::MAX;

impl DeviceGroup {
    /// The devices of one of several groups, none of them registered.
    pub(super) fn gather(
        behaviour: DeviceBehaviour,
        DeviceRange { first, count }: DeviceRange,
        share: ArrivalShare,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::from_seed(seed);
        // A server may remember the ids of an earlier run.
        let member = GroupMember {
            location: LocationRef::default(),
            place: NOWHERE,
            next_id: rng.number_u16(),
        };
        let sleep = behaviour.sleep;
        Self {
            behaviour,
            first,
            members: vec![member; count as usize],
            registered: 0,
            locations: Locations::default(),
            exchanges: Vec::new(),
            free_places: Vec::new(),
            deadlines: Deadlines::default(),
            sleep: sleep.map(|times| SleepCycle::of(times, count)),
            task: LoadTask::Listen,
            until_ns: u64::MAX,
            is_ending: false,
            cursor: 0,
            next_send: share.index,
            groups: share.of,
            rng,
            tally: TaskTally::default(),
        }
    }

    /// Starts a task. Responses before `until_ns` are in time.
    pub(super) fn begin(&mut self, task: LoadTask, now_ns: u64, until_ns: u64) {
        self.task = task;
        self.until_ns = until_ns;
        self.is_ending = false;
        self.cursor = 0;
        self.tally = TaskTally::begin_task(now_ns);
    }

    /// Ends the task: no further request leaves, and those in progress are waited for.
    pub(super) fn end(&mut self, now_ns: u64) {
        if self.is_ending {
            return;
        }
        self.is_ending = true;
        self.until_ns = self.until_ns.min(now_ns);
        if let Some(schedule) = self.task.schedule_mut() {
            schedule.end(now_ns);
        }
        let places = 0..u32::try_from(self.exchanges.len()).unwrap_or(u32::MAX);
        for place in places {
            if self.exchange(place).is_some_and(LoadExchange::is_resting) {
                self.close(place);
            }
        }
    }

    /// Retransmits what is due, and sends the requests that are due.
    pub(super) fn turn(&mut self, now_ns: u64, out: &mut Outbox) {
        while let Some(place) = self.deadlines.take_due(now_ns) {
            self.look_at(place, now_ns, out);
        }
        self.wake_and_sleep(now_ns, out);
        for _ in 0..BURST {
            let Some(due_at_ns) = self.due(now_ns) else {
                return;
            };
            let Some((member, act)) = self.next_free() else {
                self.give_up_after_the_end(now_ns);
                return;
            };
            if let Some(schedule) = self.task.schedule_mut() {
                schedule.advance();
            }
            self.request(member, act, due_at_ns, now_ns, out);
        }
    }

    /// Makes a device update its registration out of turn; returns false if it has a request in
    /// progress.
    pub(super) fn wake(&mut self, member: u32, now_ns: u64, out: &mut Outbox) -> bool {
        let found = self.members.get(member as usize);
        let Some(found) = found.filter(|found| found.location.is_known()) else {
            return true;
        };
        let is_free = found.place == NOWHERE;
        if is_free {
            self.request(member, LoadRequest::Update, now_ns, now_ns, out);
        }
        is_free
    }

    /// Handles a datagram for a device.
    pub(super) fn handle_datagram(
        &mut self,
        member: u32,
        bytes: &[u8],
        now_ns: u64,
        out: &mut Outbox,
    ) {
        if self.is_lost() {
            return;
        }
        if let Some(sleep) = &mut self.sleep {
            if sleep.is_asleep(member) {
                self.tally.unheard += 1;
                return;
            }
            sleep.stay_awake(member, now_ns);
        }
        if let Some(answer) = datagram::bare_answer(bytes) {
            match self.under_way(member, answer.message_id) {
                Some(place) => self.settle(place, answer.code, None, now_ns),
                None => self.tally.stray += 1,
            }
            return;
        }
        match Message::decode(bytes) {
            Ok(message) => self.handle_message(member, &message, now_ns, out),
            Err(_) => self.tally.fail(LoadFailure::Malformed, now_ns),
        }
    }

    /// Handles that the DTLS handshake of a device failed.
    pub(super) fn handle_failed_handshake(&mut self, member: u32, now_ns: u64) {
        let place = self.members.get(member as usize).map(|it| it.place);
        if let Some(place) = place.filter(|place| self.exchange(*place).is_some()) {
            self.fail(place, LoadFailure::Handshake, now_ns);
        }
    }

    /// Takes the counts since the task began.
    pub(super) fn take_tally(&mut self) -> TaskTally {
        std::mem::take(&mut self.tally)
    }

    /// The counts since the task began.
    pub(super) fn tally(&self) -> &TaskTally {
        &self.tally
    }

    /// When the clock alone causes something to do; while no device is free, only responses do.
    pub(super) fn next_at(&self) -> Option<u64> {
        let has_free_device = match &self.task {
            LoadTask::Register(_) | LoadTask::Return(_) => self.cursor < self.members.len(),
            LoadTask::Repeat(..) => self.open() < self.registered,
            LoadTask::Listen => false,
        };
        let schedule = self.task.schedule().filter(|_| has_free_device);
        let sleep = self.sleep.as_ref().filter(|_| self.has_cycle());
        let times = [
            schedule.and_then(ArrivalSchedule::next_at),
            sleep.and_then(SleepCycle::next_at),
            self.deadlines.next_at(),
        ];
        times.into_iter().flatten().min()
    }

    /// Whether the task has ended; listening never ends by itself.
    pub(super) fn is_done(&self, now_ns: u64) -> bool {
        let is_over = match &self.task {
            LoadTask::Register(_) | LoadTask::Return(_) => {
                self.is_ending || self.cursor >= self.members.len()
            }
            LoadTask::Repeat(_, schedule) => schedule.is_over(now_ns),
            LoadTask::Listen => self.is_ending,
        };
        is_over && self.open() == 0
    }

    /// The number of registered devices.
    pub(super) fn registered(&self) -> u32 {
        self.registered
    }

    fn open(&self) -> u32 {
        let open = self.exchanges.len() - self.free_places.len();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    fn due(&self, now_ns: u64) -> Option<u64> {
        let schedule = self.task.schedule()?;
        schedule.due(now_ns, self.open())
    }

    /// Whether devices wake and fall asleep now: not while they register, nor at the end.
    fn has_cycle(&self) -> bool {
        match self.task {
            LoadTask::Register(_) | LoadTask::Return(_) => false,
            LoadTask::Repeat(..) | LoadTask::Listen => !self.is_ending,
        }
    }

    /// Lets devices fall asleep that were quiet for long enough, and wakes those that slept for
    /// long enough: each updates its registration.
    fn wake_and_sleep(&mut self, now_ns: u64, out: &mut Outbox) {
        while self.has_cycle()
            && let Some(sleep) = &mut self.sleep
            && let Some((member, due)) = sleep.take_due(now_ns)
        {
            let known = self.members.get(member as usize);
            let is_busy = known.is_some_and(|known| known.place != NOWHERE);
            match due {
                SleepDue::Sleep if !is_busy => {
                    sleep.fall_asleep(member, now_ns, &mut self.rng);
                }
                SleepDue::Sleep | SleepDue::Wake => {
                    sleep.stay_awake(member, now_ns);
                    if due == SleepDue::Wake {
                        self.wake(member, now_ns, out);
                    }
                }
            }
        }
    }

    /// The device whose turn it is, of those without a request in progress.
    fn next_free(&mut self) -> Option<(u32, LoadRequest)> {
        let count = self.members.len();
        match self.task {
            LoadTask::Register(_) | LoadTask::Return(_) => {
                let member = u32::try_from(self.cursor).ok();
                let member = member.filter(|_| self.cursor < count)?;
                self.cursor += 1;
                Some((member, LoadRequest::Register))
            }
            LoadTask::Repeat(..) if self.open() >= self.registered => None,
            LoadTask::Repeat(mix, _) => {
                for _ in 0..count {
                    let at = self.cursor;
                    self.cursor = if at + 1 < count { at + 1 } else { 0 };
                    let member = self.members.get(at)?;
                    if member.place == NOWHERE && member.location.is_known() {
                        let act = mix.draw(&mut self.rng);
                        return Some((u32::try_from(at).ok()?, act));
                    }
                }
                None
            }
            LoadTask::Listen => None,
        }
    }

    fn give_up_after_the_end(&mut self, now_ns: u64) {
        if let LoadTask::Repeat(_, schedule) = &mut self.task
            && now_ns >= self.until_ns
        {
            let unsent = schedule.abandon();
            self.tally.fail_times(LoadFailure::Unsent, unsent);
        }
    }

    fn request(
        &mut self,
        number: u32,
        act: LoadRequest,
        due_at_ns: u64,
        now_ns: u64,
        out: &mut Outbox,
    ) {
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.exchanges.push(None);
            u32::try_from(self.exchanges.len() - 1).expect("no more exchanges than devices")
        });
        let Some(member) = self.members.get_mut(number as usize) else {
            return self.free_places.push(place);
        };
        member.place = place;
        member.next_id = member.next_id.wrapping_add(1);
        let mut exchange = LoadExchange::begin(
            (number, member.next_id, act),
            due_at_ns,
            now_ns,
            &self.behaviour.transmission,
            &mut self.rng,
        );
        if act == LoadRequest::Send {
            exchange.send_number = self.next_send;
            self.next_send = self.next_send.wrapping_add(self.groups);
        }
        if self.behaviour.sessions == SessionUse::OneRequest {
            out.forget_session(number);
        }
        self.tally.begin(due_at_ns, now_ns, LATE_NS);
        self.deadlines.set(place, exchange.next_at_ns);
        if let Some(slot) = self.exchanges.get_mut(place as usize) {
            *slot = Some(exchange);
        }
        self.transmit(exchange, now_ns, out);
    }

    fn look_at(&mut self, place: u32, now_ns: u64, out: &mut Outbox) {
        let Some(Some(exchange)) = self.exchanges.get_mut(place as usize) else {
            return;
        };
        match exchange.look(now_ns) {
            ExchangeDue::NotYet => self.deadlines.set(place, exchange.next_at_ns),
            ExchangeDue::Repeat => {
                self.deadlines.set(place, exchange.next_at_ns);
                let exchange = *exchange;
                self.tally.retransmissions += 1;
                self.transmit(exchange, now_ns, out);
            }
            ExchangeDue::Retry => self.retry(place, now_ns, out),
            ExchangeDue::GiveUp => {
                // The server may have lost the session; DTLS 1.2 has no authenticated reset.
                out.forget_session(exchange.member);
                self.fail(place, LoadFailure::Timeout, now_ns);
            }
        }
    }

    /// Counts a failed request; a device that must come back tries again later.
    fn fail(&mut self, place: u32, failure: LoadFailure, now_ns: u64) {
        self.tally.fail(failure, now_ns);
        let must_return = matches!(self.task, LoadTask::Return(_)) && !self.is_ending;
        if let Some(Some(exchange)) = self.exchanges.get_mut(place as usize)
            && must_return
            && exchange.rest(now_ns)
        {
            self.deadlines.set(place, exchange.next_at_ns);
        } else {
            self.close(place);
        }
    }

    /// Sends a new request in place of one that failed.
    fn retry(&mut self, place: u32, now_ns: u64, out: &mut Outbox) {
        let Some(Some(exchange)) = self.exchanges.get_mut(place as usize) else {
            return;
        };
        let Some(member) = self.members.get_mut(exchange.member as usize) else {
            return;
        };
        member.next_id = member.next_id.wrapping_add(1);
        let transmission = &self.behaviour.transmission;
        *exchange = exchange.retry(member.next_id, now_ns, transmission, &mut self.rng);
        let exchange = *exchange;
        self.deadlines.set(place, exchange.next_at_ns);
        self.tally.begin(now_ns, now_ns, LATE_NS);
        self.transmit(exchange, now_ns, out);
    }

    fn transmit(&mut self, exchange: LoadExchange, now_ns: u64, out: &mut Outbox) {
        let LoadExchange {
            member,
            message_id,
            act,
            send_number,
            ..
        } = exchange;
        if let Some(sleep) = &mut self.sleep {
            sleep.stay_awake(member, now_ns);
        }
        if self.is_lost() {
            return;
        }
        match act {
            LoadRequest::Register => {
                let name = self.behaviour.pattern.name(self.first + member);
                let binding = match self.sleep {
                    Some(_) => Binding::QueueMode,
                    None => Binding::Udp,
                };
                let lifetime_s = self.behaviour.lifetime_s;
                let datagram = datagram::register(&name, lifetime_s, binding, message_id);
                out.put(member, |bytes| bytes.extend_from_slice(&datagram));
            }
            LoadRequest::Send => {
                let value = self.behaviour.sends.value(send_number);
                out.put(member, |bytes| {
                    datagram::write_send(message_id, value, bytes);
                });
            }
            LoadRequest::Update => {
                let known = self.members.get(member as usize);
                let location = known.map(|known| known.location).unwrap_or_default();
                let options = self.locations.options(location);
                out.put(member, |bytes| {
                    datagram::write_update(message_id, options, bytes);
                });
            }
        }
    }

    fn handle_message(&mut self, member: u32, message: &Message, now_ns: u64, out: &mut Outbox) {
        match message.kind {
            MessageKind::Acknowledgement | MessageKind::Reset => {
                self.handle_reply(member, message, now_ns)
            }
            MessageKind::Confirmable | MessageKind::NonConfirmable if message.code.is_request() => {
                self.answer(member, message, out);
            }
            MessageKind::Confirmable | MessageKind::NonConfirmable => {
                self.handle_separate(member, message, now_ns, out);
            }
        }
    }

    fn handle_reply(&mut self, member: u32, message: &Message, now_ns: u64) {
        let Some(place) = self.under_way(member, message.message_id.0) else {
            self.tally.stray += 1;
            return;
        };
        if message.kind == MessageKind::Reset {
            self.fail(place, LoadFailure::Reset, now_ns);
        } else if message.code == Code::EMPTY {
            self.acknowledge(place, now_ns);
        } else if message.token == datagram::token(message.message_id.0) {
            self.settle(place, message.code, Some(message), now_ns);
        } else {
            self.fail(place, LoadFailure::Unexpected, now_ns);
        }
    }

    fn handle_separate(&mut self, member: u32, message: &Message, now_ns: u64, out: &mut Outbox) {
        let place = message.code.is_response().then(|| {
            let [high, low] = *message.token.as_bytes() else {
                return None;
            };
            self.under_way(member, u16::from_be_bytes([high, low]))
        });
        let place = place.flatten();
        if message.kind == MessageKind::Confirmable {
            let reply = match place {
                Some(_) => Message::acknowledgement(message.message_id),
                None => Message::reset(message.message_id),
            };
            self.send_message(member, &reply, out);
        }
        match place {
            Some(place) => self.settle(place, message.code, Some(message), now_ns),
            None => self.tally.stray += 1,
        }
    }

    fn answer(&mut self, number: u32, request: &Message, out: &mut Outbox) {
        let Some(member) = self.members.get_mut(number as usize) else {
            return;
        };
        member.next_id = member.next_id.wrapping_add(1);
        let answer = datagram::answer(request, member.next_id);
        self.tally.asked += 1;
        if self.send_message(number, &answer, out) {
            out.note_answering(number);
        }
    }

    /// Returns whether it leaves.
    fn send_message(&mut self, member: u32, message: &Message, out: &mut Outbox) -> bool {
        let leaves = !self.is_lost();
        if leaves {
            let datagram = message.encode();
            out.put(member, |bytes| bytes.extend_from_slice(&datagram));
        }
        leaves
    }

    /// The slot of a device's request with this message id.
    fn under_way(&self, member: u32, message_id: u16) -> Option<u32> {
        let place = self.members.get(member as usize)?.place;
        let exchange = self.exchange(place)?;
        (exchange.message_id == message_id && !exchange.is_resting()).then_some(place)
    }

    fn exchange(&self, place: u32) -> Option<&LoadExchange> {
        self.exchanges.get(place as usize)?.as_ref()
    }

    fn acknowledge(&mut self, place: u32, now_ns: u64) {
        if let Some(Some(exchange)) = self.exchanges.get_mut(place as usize) {
            exchange.acknowledge(now_ns, &self.behaviour.transmission);
            self.deadlines.set(place, exchange.next_at_ns);
        }
    }

    fn settle(&mut self, place: u32, code: Code, answer: Option<&Message>, now_ns: u64) {
        let Some(exchange) = self.exchange(place).copied() else {
            return;
        };
        let is_right = match exchange.act {
            LoadRequest::Register => code == Code::CREATED && self.locate(exchange.member, answer),
            LoadRequest::Update | LoadRequest::Send => code == Code::CHANGED,
        };
        if is_right {
            self.close(place);
            self.count(&exchange, now_ns);
        } else if code.is_success() {
            self.fail(place, LoadFailure::Unexpected, now_ns);
        } else {
            self.fail(place, LoadFailure::Refused(code), now_ns);
        }
    }

    fn count(&mut self, exchange: &LoadExchange, now_ns: u64) {
        let LoadExchange { due_at_ns, act, .. } = *exchange;
        self.tally.answer(due_at_ns, now_ns, self.until_ns);
        let latencies = self.tally.latencies_by_request.entry(act).or_default();
        latencies.record(now_ns.saturating_sub(due_at_ns));
        if act == LoadRequest::Send && self.behaviour.sends.recording == Recording::On {
            self.tally.acknowledged.push(NumberedSend {
                device: self.first + exchange.member,
                number: exchange.send_number,
            });
        }
    }

    /// Stores the location of a registration; returns whether the response has one.
    fn locate(&mut self, member: u32, answer: Option<&Message>) -> bool {
        let options = answer.and_then(datagram::options_to);
        let Some((member, options)) = self.members.get_mut(member as usize).zip(options) else {
            return false;
        };
        let Some(location) = self.locations.keep(member.location, &options) else {
            return false;
        };
        self.registered += u32::from(!member.location.is_known());
        member.location = location;
        true
    }

    fn close(&mut self, place: u32) -> Option<LoadExchange> {
        let exchange = self.exchanges.get_mut(place as usize)?.take()?;
        self.free_places.push(place);
        if let Some(member) = self.members.get_mut(exchange.member as usize) {
            member.place = NOWHERE;
        }
        Some(exchange)
    }

    fn is_lost(&mut self) -> bool {
        let percent = self.behaviour.loss_percent;
        let is_lost = percent > 0 && self.rng.hits(percent);
        self.tally.dropped += u64::from(is_lost);
        is_lost
    }
}

#[cfg(test)]
mod tests;
