//! How events reach the systems of customers: desks, errands, endpoints, and what goes wrong there.

use engine::delivery::forwarding::{Delivered, Errand, Forwarding};
use engine::delivery::letter::Waiting;
use engine::ids::{DestinationId, Shard};
use engine::moment::{Moment, Timestamp};

use super::World;
use crate::disk::Author;
use crate::endpoints::TIMEOUT_MS;
use crate::event::{Event, Parcel};
use crate::laws::delivering;
use crate::service::post::{Input, Step};
use crate::service::{Reading, Receipt};
use crate::trace::What;

/// How soon a destination whose step was not saved is brought back.
const STORE_RETRY_MS: i64 = 1_000;

impl World {
    /// The service starts: each destination has a desk, whose machine is brought back.
    pub(super) fn open_desks(&mut self) {
        let outbox = self.disk.durable.outbox();
        let ids: Vec<DestinationId> = outbox.destinations().map(|it| it.destination.id).collect();
        for id in ids {
            self.open_desk_in(id, 0);
        }
    }

    /// A machine is brought back for a destination, after so long and as the disk takes it.
    pub(super) fn open_desk_in(&mut self, id: DestinationId, ms: i64) {
        self.service.post.close(id);
        let run = self.service.run();
        let at_ms = self.now_ms + ms + self.read_ms();
        self.queue.push(at_ms, Event::DeskOpens { id, run });
    }

    pub(super) fn desk_opens(&mut self, id: DestinationId, run: u64) {
        let is_awaited = self.service.is_up_since(run) && self.service.post.has(id);
        if !is_awaited || self.service.post.clerk(id).is_some() {
            return;
        }
        if self.read().is_err() {
            return self.open_desk_in(id, STORE_RETRY_MS);
        }
        let outbox = self.disk.durable.outbox();
        let Some(kept) = outbox.destination(id) else {
            return self.service.post.remove(id);
        };
        let rules = self.nature.delivery.clone();
        let (destination, standing) = (kept.destination.clone(), kept.standing());
        let waiting_in = outbox.shards_waiting(id);
        let forwarding = Forwarding::restore(rules, destination, standing, waiting_in);
        let generation = self.next_number();
        self.judge.ledgers.served_anew(id);
        self.service.post.open(id, generation, forwarding);
        self.census.desks_opened += 1;
        self.note(What::Post {
            id,
            does: "is served",
        });
        self.tell_desk(id, Input::Due);
    }

    /// Puts an input to a destination's machine, now or when it is its turn.
    pub(super) fn tell_desk(&mut self, id: DestinationId, input: Input) {
        if let Some(clerk) = self.service.post.clerk_mut(id) {
            clerk.wait(input);
            self.work_at_desk(id);
        }
    }

    /// Lets a machine take the inputs that wait, up to the next step that has to be saved.
    fn work_at_desk(&mut self, id: DestinationId) {
        while let Some(clerk) = self.service.post.clerk_mut(id)
            && let Some(input) = clerk.next_input()
        {
            let m = self.moment();
            if let Input::Delivered(sequence, _) = &input {
                self.judge.ledgers.landed(id, *sequence);
            }
            if let Input::Delivered(sequence, Delivered::Taken | Delivered::Gone) = &input {
                self.judge.ledgers.settled(id, *sequence);
            }
            if let Input::Unread = input {
                return self.drop_clerk(id);
            }
            let clerk = self.service.post.clerk_mut(id).expect("it has an input");
            let Step { batch, errands } = clerk.step(m, input);
            if batch.is_empty() {
                self.run_errands(id, None, &errands);
                continue;
            }
            let step = self.next_number();
            self.judge.will_be_saved(step);
            if let Some(clerk) = self.service.post.clerk_mut(id) {
                clerk.await_receipt(step, errands);
                let generation = clerk.generation;
                self.commit_as(
                    Author::Forwarder {
                        id,
                        generation,
                        step,
                    },
                    batch,
                );
            }
        }
    }

    /// A step of a destination is done with, one way or the other.
    pub(super) fn desk_hears(
        &mut self,
        (id, generation, step): (DestinationId, u64, u64),
        receipt: Receipt,
    ) {
        let Some(clerk) = self.service.post.same_clerk(id, generation) else {
            return;
        };
        let errands = clerk.receive(step);
        match receipt {
            Receipt::Durable => {
                self.run_errands(id, Some(step), &errands);
                self.work_at_desk(id);
            }
            Receipt::Unsaved => self.drop_clerk(id),
        }
    }

    /// The machine of a destination is dropped, and brought back a little later.
    fn drop_clerk(&mut self, id: DestinationId) {
        self.census.desks_dropped += 1;
        self.note(What::Post {
            id,
            does: "is dropped",
        });
        self.open_desk_in(id, STORE_RETRY_MS);
    }

    fn run_errands(&mut self, id: DestinationId, step: Option<u64>, errands: &[Errand]) {
        let verdict = self.judge.runs_errands(step);
        self.check(verdict);
        let clerk = self.service.post.clerk(id).expect("whose errands they are");
        let generation = clerk.generation;
        for errand in errands {
            match *errand {
                Errand::Read { shard, after, max } => {
                    let reading = Reading::Rows { shard, after, max };
                    self.read_for(id, generation, reading);
                }
                Errand::ReadDead { after, max } => {
                    self.read_for(id, generation, Reading::Dead { after, max });
                }
                Errand::Deliver(waiting) => self.set_out(id, generation, waiting),
            }
        }
        self.arm_desk(id);
    }

    fn arm_desk(&mut self, id: DestinationId) {
        let Some(clerk) = self.service.post.clerk_mut(id) else {
            return;
        };
        let generation = clerk.generation;
        if let Some(at) = clerk.arm() {
            let at_ms = at.as_ms().max(self.now_ms + 1);
            self.queue.push(at_ms, Event::DeskDue { id, generation });
        }
    }

    pub(super) fn desk_due(&mut self, id: DestinationId, generation: u64) {
        if self.service.post.same_clerk(id, generation).is_some() {
            self.tell_desk(id, Input::Due);
        }
    }

    fn read_for(&mut self, id: DestinationId, generation: u64, reading: Reading) {
        let at_ms = self.now_ms + self.read_ms();
        let event = Event::ReadForDesk {
            id,
            generation,
            reading,
        };
        self.queue.push(at_ms, event);
    }

    pub(super) fn read_for_desk(&mut self, id: DestinationId, generation: u64, reading: Reading) {
        if self.service.post.same_clerk(id, generation).is_none() {
            return;
        }
        if self.read().is_err() {
            return self.tell_desk(id, Input::Unread);
        }
        let outbox = self.disk.durable.outbox();
        let input = match reading {
            Reading::Rows { shard, after, max } => {
                let rows = outbox.waiting(shard, after).take(max as usize);
                Input::Rows(shard, rows.copied().collect())
            }
            Reading::Dead { after, max } => {
                let kept = outbox.destination(id);
                Input::Dead(kept.map_or(Vec::new(), |kept| kept.dead_behind(after, max)))
            }
        };
        self.tell_desk(id, input);
    }

    /// An event leaves for an endpoint.
    fn set_out(&mut self, id: DestinationId, generation: u64, waiting: Waiting) {
        let durable = &self.disk.durable;
        let ledgers = &self.judge.ledgers;
        let verdict =
            delivering::events_of_a_device_keep_their_order(ledgers, id, &waiting, durable);
        self.check(verdict);
        let ledgers = &mut self.judge.ledgers;
        let verdict = delivering::one_event_of_a_device_is_under_way(ledgers, id, &waiting);
        self.check(verdict);
        let parcel = Parcel {
            id,
            generation,
            waiting,
        };
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::Delivers { parcel });
    }

    /// An event is read and reaches the endpoint, which does with it what it likes.
    pub(super) fn delivers(&mut self, parcel: Parcel) {
        let Parcel {
            id,
            generation,
            waiting,
        } = parcel;
        // What was under way when the service fell arrives all the same, or not at all.
        let is_awaited = self.service.post.same_clerk(id, generation).is_some();
        if !is_awaited && self.chance.below(2) == 0 {
            return;
        }
        if is_awaited && self.read().is_err() {
            return self.tell_desk(id, Input::Unread);
        }
        let outbox = self.disk.durable.outbox();
        let Some(who) = outbox.said_by(waiting.event) else {
            self.census.gone += 1;
            return self.answered_in(1, parcel, Delivered::Gone);
        };
        let now_ms = self.now_ms;
        let reception = self
            .endpoints
            .receive(id, now_ms, Some(who), &mut self.chance);
        self.census.count_reception(&reception);
        let sequence = waiting.sequence.0;
        let how = reception.answer.unwrap_or("does not answer");
        self.note(What::Tried { id, sequence, how });
        let not_taken = |why: &str| Delivered::NotTaken { why: why.into() };
        match reception.answer {
            Some(_) if reception.is_taken => {
                self.answered_in(reception.after_ms, parcel, Delivered::Taken);
            }
            Some(why) => self.answered_in(reception.after_ms, parcel, not_taken(why)),
            None => self.answered_in(TIMEOUT_MS, parcel, not_taken("did not answer in time")),
        }
    }

    fn answered_in(&mut self, ms: i64, parcel: Parcel, delivered: Delivered) {
        let event = Event::Delivered { parcel, delivered };
        self.queue.push(self.now_ms + ms, event);
    }

    pub(super) fn delivered(&mut self, parcel: &Parcel, delivered: Delivered) {
        let (id, sequence) = (parcel.id, parcel.waiting.sequence);
        let is_awaited = self
            .service
            .post
            .same_clerk(id, parcel.generation)
            .is_some();
        if is_awaited {
            self.tell_desk(id, Input::Delivered(sequence, delivered));
        }
    }

    /// Something waits in a shard, and that is durable: the boards tell it.
    pub(super) fn note_on_boards(&mut self, shard: Shard) {
        for id in self.service.post.ids() {
            let Some(clerk) = self.service.post.clerk_mut(id) else {
                continue;
            };
            if clerk.note(shard) {
                let generation = clerk.generation;
                let at_ms = self.now_ms + i64::from(self.chance.below(4));
                self.queue.push(at_ms, Event::BoardRead { id, generation });
            }
        }
    }

    pub(super) fn board_read(&mut self, id: DestinationId, generation: u64) {
        if let Some(clerk) = self.service.post.same_clerk(id, generation) {
            let shards = clerk.read_board();
            self.tell_desk(id, Input::News(shards));
        }
    }

    fn moment(&mut self) -> Moment {
        let entropy = u128::from(self.chance.number()) << 64 | u128::from(self.chance.number());
        Moment::new(Timestamp::from_ms(self.now_ms), entropy)
    }
}
