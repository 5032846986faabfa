//! How devices come back: on demand, after a failure, and all of them in the background.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor as _, ActorFutureExt as _, AsyncContext as _, Context, WrapFuture as _};
use engine::admin_log::entry::{Entry, Seen};
use engine::device::Device;
use engine::device::record::Restored;
use engine::ids::DeviceKey;
use engine::registry::AfterPanic;
use store::Unavailable;
use tracing::{error, info, warn};

use crate::device::{DeviceActor, Input};
use crate::devices::Unserved;
use crate::logging::Record;
use crate::registry::Registry;
use crate::residents::{Crowded, Live, Resident};

/// Devices brought back in one go when the service starts; the next go waits for it, so that
/// what devices and callers want comes first.
const RESTORED_PER_TURN: u32 = 256;

/// How soon a failing store is asked again.
const STORE_RETRY: Duration = Duration::from_secs(1);

impl Registry {
    /// Brings a device back from the store; its inputs wait meanwhile.
    pub(super) fn restore(&mut self, key: DeviceKey, ctx: &mut Context<Self>) {
        self.residents.put(key, Resident::Restoring(Vec::new()));
        let restored = self.home.store.restored(key).into_actor(self);
        ctx.spawn(restored.map(move |found, registry, ctx| registry.revive(key, found, ctx)));
    }

    /// Brings back, page by page, every device that has a registration or something to do.
    pub(super) fn restore_all(&mut self, after: Option<DeviceKey>, ctx: &mut Context<Self>) {
        let page = self
            .home
            .store
            .live_devices(after, RESTORED_PER_TURN)
            .into_actor(self);
        ctx.spawn(page.map(move |page, registry, ctx| match page {
            Ok(keys) => registry.restore_page(&keys, ctx),
            Err(Unavailable) => {
                ctx.run_later(STORE_RETRY, move |registry, ctx| {
                    registry.restore_all(after, ctx)
                });
            }
        }));
    }

    /// Brings a device back whose step was not saved, once the store had time to recover.
    pub(super) fn restore_soon(&mut self, key: DeviceKey, ctx: &mut Context<Self>) {
        self.residents.remove(key);
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

    fn restore_page(&mut self, keys: &[DeviceKey], ctx: &mut Context<Self>) {
        for key in keys {
            if self.residents.get(*key).is_none() {
                self.restore(*key, ctx);
            }
        }
        match keys.last() {
            Some(last) => self.restore_all(Some(*last), ctx),
            None => info!("all devices are restored"),
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
                self.residents.remove(key);
                refuse_all(waiting, Unserved::Unknown);
            }
            Err(Unavailable) => {
                warn!(device = %key, "the store did not give a device back");
                refuse_all(waiting, Unserved::Failed);
                self.restore_soon(key, ctx);
            }
        }
    }

    fn start_device(&mut self, key: DeviceKey, restored: Restored, waiting: Vec<Input>) {
        let mut m = self.home.clock.moment();
        let device = Device::restore(&mut m, Arc::clone(&self.home.rules), restored);
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let actor = DeviceActor::new(device, Rc::clone(&self.home), generation).start();
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
        ctx.spawn(profile.map(|found, registry, _| {
            if let Ok(Some(profile)) = found {
                let mut m = registry.home.clock.moment();
                let entry = Entry::device_parked(
                    &mut m,
                    Seen {
                        profile: &profile,
                        at: None,
                    },
                );
                if registry.logging.try_send(Record(Box::new(entry))).is_err() {
                    warn!("the logging actor is busy; an entry is lost");
                }
            }
        }));
    }
}

fn refuse_all(waiting: Vec<Input>, why: Unserved) {
    for input in waiting {
        match input {
            Input::Asked(question) => question.refuse(why),
            // A device that is not there is not heard and has no deadlines.
            Input::Heard(_) | Input::Due => {}
        }
    }
}
