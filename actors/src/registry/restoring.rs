//! How devices come back: on demand, after a failure, and all of them in the background.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use actix::{Actor as _, ActorFutureExt as _, AsyncContext as _, Context, WrapFuture as _};
use engine::admin_log::entry::{Entry, Seen};
use engine::device::Device;
use engine::device::identity::Identity;
use engine::device::record::Restored;
use engine::event::Event;
use engine::ids::DeviceKey;
use engine::moment::Timestamp;
use engine::registry::AfterPanic;
use store::{RestoredPage, Unavailable};
use tracing::{Span, error, info, warn};

use crate::device::{DeviceActor, INPUTS_MAX, Input};
use crate::devices::Unserved;
use crate::logging::Record;
use crate::registry::Registry;
use crate::residents::{Crowded, Live, Resident};

/// Devices brought back in one go when the service starts; the next go waits for it, so that
/// what devices and callers want comes first.
const RESTORED_PER_TURN: u32 = 256;

/// How soon a failing store is asked again.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// How long after the last page every device that was on it has said where it is: an actor says so
/// when it starts, which is its arbiter's next turn.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// How often the operator is told how far the start has come.
const PROGRESS_EVERY_MS: i64 = 2_000;

/// How far the background has come with bringing devices back.
pub(super) struct Starting {
    begun_at: Timestamp,
    told_at: Timestamp,
    restored: u64,
    /// Who moved out since the page under way was asked for: what it says of them is old.
    left: HashSet<DeviceKey>,
}

impl Registry {
    /// Lets a device move out.
    pub(super) fn move_out(&mut self, key: DeviceKey) {
        self.residents.remove(key);
        if let Some(starting) = &mut self.starting {
            starting.left.insert(key);
        }
    }

    /// Brings a device back from the store; its inputs wait meanwhile.
    pub(super) fn restore(&mut self, key: DeviceKey, ctx: &mut Context<Self>) {
        self.residents.put(key, Resident::Restoring(Vec::new()));
        let restored = self.home.store.restored(key).into_actor(self);
        ctx.spawn(restored.map(move |found, registry, ctx| registry.revive(key, found, ctx)));
    }

    /// Brings back, page by page, every device that has a registration or something to do.
    pub(super) fn restore_all(&mut self, ctx: &mut Context<Self>) {
        let now = self.home.clock.now();
        self.starting = Some(Starting {
            begun_at: now,
            told_at: now,
            restored: 0,
            left: HashSet::new(),
        });
        self.restore_from(*self.home.keys.start(), ctx);
    }

    fn restore_from(&mut self, first: DeviceKey, ctx: &mut Context<Self>) {
        if let Some(starting) = &mut self.starting {
            starting.left.clear();
        }
        let keys = first..=*self.home.keys.end();
        let page = self.home.store.restored_page(keys, RESTORED_PER_TURN);
        ctx.spawn(
            page.into_actor(self)
                .map(move |page, registry, ctx| match page {
                    Ok(page) => registry.restore_page(page, ctx),
                    Err(Unavailable) => {
                        ctx.run_later(STORE_RETRY, move |registry, ctx| {
                            registry.restore_from(first, ctx);
                        });
                    }
                }),
        );
    }

    /// Brings a device back whose step was not saved, once the store had time to recover.
    pub(super) fn restore_soon(&mut self, key: DeviceKey, ctx: &mut Context<Self>) {
        self.move_out(key);
        ctx.run_later(STORE_RETRY, move |registry, ctx| {
            if registry.residents.get(key).is_none() {
                registry.restore(key, ctx);
            }
        });
    }

    /// Brings a device back whose actor panicked, or leaves it alone.
    pub(super) fn after_panic(&mut self, key: DeviceKey, ctx: &mut Context<Self>) {
        let now = self.home.clock.now();
        match self.panics.entry(key).or_default().note(now) {
            AfterPanic::Restore => {
                error!(device = %key, "the actor of a device panicked and is restored");
                self.restore(key, ctx);
            }
            AfterPanic::Park => {
                error!(device = %key, "the actor of a device keeps panicking and is parked");
                self.residents.put(key, Resident::Parked);
                self.log_parked(key, ctx);
            }
        }
    }

    fn restore_page(&mut self, page: RestoredPage, ctx: &mut Context<Self>) {
        for (key, restored) in page.devices {
            let Some(starting) = &mut self.starting else {
                return;
            };
            starting.restored += 1;
            // Whoever was here meanwhile knows more than the page.
            if self.residents.get(key).is_none() && !starting.left.contains(&key) {
                self.start_device(key, restored, Vec::new());
            }
        }
        self.publish_progress(page.next);
        match page.next {
            Some(next) => {
                self.tell_progress(next);
                self.restore_from(next, ctx);
            }
            None => self.end_start(ctx),
        }
    }

    /// Says how far the start has come: to the devices from this one on, or to its end.
    fn publish_progress(&self, next: Option<DeviceKey>) {
        let part = next.map_or(1.0, |next| part_before(next, &self.home.keys));
        let restored = self.starting.as_ref().map_or(0, |it| it.restored);
        self.home.meters.publish_progress(restored, part);
    }

    /// Tells the operator now and then how far the start has come.
    fn tell_progress(&mut self, next: DeviceKey) {
        let now = self.home.clock.now();
        let percent = (100.0 * part_before(next, &self.home.keys)) as u64;
        if let Some(starting) = &mut self.starting
            && now.since_ms(starting.told_at) >= PROGRESS_EVERY_MS
        {
            starting.told_at = now;
            let restored = starting.restored;
            info!(
                arbiter = self.home.here.index(),
                restored, percent, "devices are brought back"
            );
        }
    }

    fn end_start(&mut self, ctx: &mut Context<Self>) {
        if let Some(starting) = self.starting.take() {
            let restored = starting.restored;
            match restored {
                0 => self.home.muster.note_complete(),
                // The last of them have yet to say where they are.
                1.. => {
                    ctx.run_later(SETTLED_AFTER, |registry, _| {
                        registry.home.muster.note_complete();
                    });
                }
            }
            let took_ms = self.home.clock.now().since_ms(starting.begun_at);
            info!(
                arbiter = self.home.here.index(),
                restored, took_ms, "all devices are restored"
            );
        }
    }

    fn revive(
        &mut self,
        key: DeviceKey,
        found: Result<Option<Restored>, Unavailable>,
        ctx: &mut Context<Self>,
    ) {
        let Some(Resident::Restoring(waiting)) = self.residents.get(key) else {
            return;
        };
        let waiting = std::mem::take(waiting);
        match found {
            Ok(Some(restored)) => self.start_device(key, restored, waiting),
            Ok(None) => {
                self.move_out(key);
                refuse_all(waiting, Unserved::Unknown);
            }
            Err(Unavailable) => {
                let span = waiting.iter().find_map(Input::span);
                span.unwrap_or(&Span::none())
                    .in_scope(|| warn!(device = %key, "the store did not give a device back"));
                refuse_all(waiting, Unserved::Failed);
                self.restore_soon(key, ctx);
            }
        }
    }

    fn start_device(&mut self, key: DeviceKey, restored: Restored, waiting: Vec<Input>) {
        let mut m = self.home.clock.moment();
        let contract = self.home.contracts.of(restored.profile.customer.clone());
        let device = Device::restore(&mut m, contract.terms(), restored);
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let home = Rc::clone(&self.home);
        let actor = DeviceActor::create(|ctx| {
            // Before it has its first turn: what waited for it is handed to it at once.
            ctx.set_mailbox_capacity(INPUTS_MAX);
            DeviceActor::new(device, contract, home, generation)
        });
        let mut resident = Resident::Live(Live {
            actor,
            generation,
            sent: 0,
        });
        for input in waiting {
            if let Err(Crowded(input)) = resident.hand(input) {
                self.turn_away(key, input);
            }
        }
        self.residents.put(key, resident);
    }

    fn log_parked(&mut self, key: DeviceKey, ctx: &mut Context<Self>) {
        let profile = self.home.store.profile(key).into_actor(self);
        ctx.spawn(profile.map(move |found, registry, _| {
            if let Ok(Some(profile)) = found {
                let mut m = registry.home.clock.moment();
                let identity = &Identity::of(&profile);
                let at = None;
                let entry = Entry::device_parked(&mut m, Seen { key, identity, at });
                let told = Event::of_entry(&mut m, &entry, identity).map(Box::new);
                let entry = Box::new(entry);
                if registry.logging.try_send(Record { entry, told }).is_err() {
                    warn!("the logging actor is busy; an entry is lost");
                }
            }
        }));
    }
}

/// Which part of a range of keys lies before one of them, from 0 to 1: keys are digests, so the
/// same part of the devices does.
fn part_before(key: DeviceKey, keys: &RangeInclusive<DeviceKey>) -> f64 {
    let place = |key: &DeviceKey| u64::from_be_bytes(key.prefix()) as f64;
    let (first, last) = (place(keys.start()), place(keys.end()));
    (place(&key) - first) / (last - first).max(1.0)
}

fn refuse_all(waiting: Vec<Input>, why: Unserved) {
    for input in waiting {
        match input {
            Input::Asked(asked) => asked.question.refuse(why),
            Input::Renamed(renamed) => renamed.refuse(why),
            // A device that is not there is not heard and has no deadlines.
            Input::Heard(_) | Input::Due => {}
        }
    }
}
