//! Whose datagram, whose question? The registry starts, restores, supervises and releases the
//! device actors of its arbiter, and hands them what is theirs.

use std::cell::RefMut;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, Arbiter, AsyncContext as _, Context,
    Handler, Message, MessageResult, StreamHandler, WrapFuture as _,
};
use engine::change::Name;
use engine::datagram::{Arrival, Datagram};
use engine::ids::{DeviceKey, Endpoint};
use engine::location::Location;
use engine::peer::{Peer, Via};
use engine::registry::form::Form;
use engine::registry::lanes::{Bounds, Lanes};
use engine::registry::router::{Route, Router};
use engine::registry::{self, Fate, Panics, Sorted};
use store::{Pressure, Unavailable};
use tracing::{Span, debug, error, trace};

use crate::deadlines::{Alarm, Rang};
use crate::device::{Asked, Input};
use crate::devices::Unserved;
use crate::home::{Home, HomeParts, Place};
use crate::logging::Logging;
use crate::meters::waiting::Waiting;
use crate::meters::{PUBLISH_EVERY, Reading};
use crate::neighbours::{Neighbours, Post};
use crate::residents::{Crowded, Resident, Residents};
use crate::socket::{Arrived, Inbox, Open, Sockets};
use crate::tally::Tally;
use crate::terms::Contracts;

mod addressing;
pub(crate) mod renaming;
mod restoring;

use restoring::Starting;

/// Devices woken in one go; then datagrams and questions get their turn.
const WAKES_PER_TURN: usize = 256;

/// Questions that may wait for the registry; more are refused as too busy.
const QUESTIONS_MAX: usize = 4_096;

/// Datagrams whose device is being looked up; more are answered 5.03.
const LOOKUPS_MAX: usize = 4_096;

/// How soon a device whose mailbox was full when it was due is tried again.
const CROWDED_RETRY_MS: i64 = 100;

/// How often the operator is told of datagrams that reached no device.
const TELL_EVERY: Duration = Duration::from_secs(600);

/// The registry of an arbiter.
pub struct Registry {
    home: Rc<Home>,
    neighbours: Neighbours,
    logging: Addr<Logging>,
    residents: Residents,
    panics: HashMap<DeviceKey, Panics>,
    generation: u32,
    /// Datagrams whose device is being looked up.
    lookups: usize,
    /// Those of them that are known by their address alone.
    lanes: Lanes<Arrival>,
    tally: Tally,
    inbox: Inbox,
    /// What is in the batch under way; kept for its memory.
    batch: Vec<(Peer, Sorted)>,
    /// What it heeds: its sockets and its deadlines.
    heeded: Vec<actix::SpawnHandle>,
    /// Until every device is back.
    starting: Option<Starting>,
}

impl Registry {
    /// Starts a registry on an arbiter, with the sockets its devices send to.
    pub(crate) fn start_on(
        arbiter: &Arbiter,
        place: Place,
        parts: HomeParts,
        open: Open,
        logging: Addr<Logging>,
    ) -> Addr<Self> {
        Self::start_in_arbiter(&arbiter.handle(), move |ctx| {
            ctx.set_mailbox_capacity(QUESTIONS_MAX);
            let sockets = Sockets::adopt(open).expect("the arbiter's runtime takes open sockets");
            Self {
                home: Home::new(parts, place, sockets, ctx.address()),
                neighbours: Neighbours::default(),
                logging,
                residents: Residents::default(),
                panics: HashMap::new(),
                generation: 0,
                lookups: 0,
                lanes: Lanes::within(Bounds::default()),
                tally: Tally::default(),
                inbox: Inbox::new(),
                batch: Vec::new(),
                heeded: Vec::new(),
                starting: None,
            }
        })
    }

    /// Takes the batch heard last: first all of it is read and its devices are looked for, then
    /// each is handed what is its own.
    fn take_batch(&mut self, ctx: &mut Context<Self>) {
        let mut batch = std::mem::take(&mut self.batch);
        for index in 0..self.inbox.len() {
            if let Some((peer, bytes)) = self.inbox.datagram(index) {
                trace!(%peer, length = bytes.len(), "datagram");
                let sorted = registry::sort(peer, bytes);
                let form = match peer.via {
                    Via::Plain => Form::heard(bytes, &sorted),
                    Via::Bare => Form::BARE,
                };
                self.home.meters.received.one(form);
                batch.push((peer, sorted));
            }
        }
        let located = batch.iter().filter_map(|(_, sorted)| match sorted {
            Sorted::ToLocation(location, _) => Some(location.device),
            Sorted::ToEndpoint(..)
            | Sorted::ToPeer(_)
            | Sorted::ToAddress(_)
            | Sorted::Answered { .. }
            | Sorted::Ignored(_) => None,
        });
        self.residents.bring_near(located);
        for (peer, sorted) in batch.drain(..) {
            self.dispatch(peer, sorted, ctx);
        }
        self.batch = batch;
    }

    fn dispatch(&mut self, peer: Peer, sorted: Sorted, ctx: &mut Context<Self>) {
        let sorted = match self.is_overloaded() {
            true => sorted.put_off(),
            false => sorted,
        };
        match sorted {
            Sorted::ToEndpoint(endpoint, datagram) => self.look_up(endpoint, datagram, ctx),
            Sorted::ToLocation(location, datagram) => {
                let route = self.router().to_location(location, datagram);
                self.follow(route, ctx);
            }
            Sorted::ToPeer(datagram) => {
                let route = self.router().to_peer(datagram);
                self.follow(route, ctx);
            }
            Sorted::ToAddress(arrival) => self.look_behind(arrival, ctx),
            Sorted::Answered { datagram, fate } => {
                self.tally.note(fate);
                self.home.send(peer, datagram);
            }
            Sorted::Ignored(fate) => self.tally.note(fate),
        }
    }

    fn follow(&mut self, route: Route, ctx: &mut Context<Self>) {
        match route {
            Route::Device(key, arrival) => self.hand(key, heard(arrival), ctx),
            Route::At(location, datagram) => match self.residents.key_at(location.device) {
                Some(key) => self.hand(key, heard(Arrival::Message(datagram)), ctx),
                None => self.look_at(location, datagram, ctx),
            },
            Route::Elsewhere(home, parcel) => {
                self.home.meters.forwarded.one();
                self.neighbours.forward(home, parcel);
            }
            Route::Nobody(datagram) => {
                let peer = datagram.peer;
                let told = registry::unknown_peer(datagram, self.home.muster.of_devices());
                self.dispatch(peer, told, ctx);
            }
        }
    }

    /// The terms of the customers of its devices.
    pub(crate) fn contracts(&self) -> &Contracts {
        &self.home.contracts
    }

    fn router(&self) -> RefMut<'_, Router> {
        self.home.router.borrow_mut()
    }

    /// Ends a turn: what was heard for neighbours leaves.
    fn end_turn(&mut self) {
        for _ in 0..self.neighbours.flush() {
            self.tally.note(Fate::Crowded);
        }
    }

    fn is_overloaded(&self) -> bool {
        self.lookups >= LOOKUPS_MAX || self.home.commits.pressure() == Pressure::Full
    }

    /// Says how much there was to do.
    fn publish(&self) {
        self.home.meters.publish(&Reading {
            now: self.home.clock.now(),
            turned_away: &self.tally,
            lookups: self.lookups,
        });
    }

    /// Finds the device that bears an endpoint name.
    fn look_up(&mut self, endpoint: Endpoint, datagram: Datagram, ctx: &mut Context<Self>) {
        self.lookups += 1;
        let bearer = self.home.store.bearer(Name::Endpoint(endpoint.clone()));
        ctx.spawn(bearer.into_actor(self).map(move |found, registry, ctx| {
            if let Ok(None) = found {
                debug!(%endpoint, peer = %datagram.peer, "nobody bears the name of a registration");
            }
            registry.found(found, datagram, registry::unknown_endpoint, ctx);
        }));
    }

    /// Finds the device at a location that does not live here yet.
    fn look_at(&mut self, location: Location, datagram: Datagram, ctx: &mut Context<Self>) {
        self.lookups += 1;
        let at = self.home.store.device_at(location.device);
        ctx.spawn(at.into_actor(self).map(move |found, registry, ctx| {
            registry.found(found, datagram, registry::unknown_location, ctx);
        }));
    }

    fn found(
        &mut self,
        found: Result<Option<DeviceKey>, Unavailable>,
        datagram: Datagram,
        unknown: fn(&Datagram) -> Sorted,
        ctx: &mut Context<Self>,
    ) {
        self.lookups -= 1;
        match found {
            Ok(Some(key)) => {
                let route = self.router().to_device(key, Arrival::Message(datagram));
                self.follow(route, ctx);
            }
            Ok(None) => self.dispatch(datagram.peer, unknown(&datagram), ctx),
            Err(Unavailable) => {
                self.dispatch(datagram.peer, registry::overloaded(&datagram), ctx);
            }
        }
        self.end_turn();
    }

    /// Hands an input to a device, bringing it back first if need be.
    fn hand(&mut self, key: DeviceKey, input: Input, ctx: &mut Context<Self>) {
        let handed = match self.residents.get(key) {
            Some(resident) => resident.hand(input),
            None => self.hand_after_restore(key, input, ctx),
        };
        if let Err(Crowded(input)) = handed {
            self.turn_away(key, input);
        }
    }

    fn hand_after_restore(
        &mut self,
        key: DeviceKey,
        input: Input,
        ctx: &mut Context<Self>,
    ) -> Result<(), Crowded> {
        self.restore(key, ctx);
        match self.residents.get(key) {
            Some(resident) => resident.hand(input),
            None => Err(Crowded(input)),
        }
    }

    /// What finds no place: the network repeats a datagram, a deadline is tried again, a caller
    /// is told.
    fn turn_away(&mut self, key: DeviceKey, input: Input) {
        match input {
            Input::Heard(arrival) => {
                for _ in 0..arrival.datagrams() {
                    self.tally.note(Fate::NoPlace);
                }
                debug!(device = %key, "a datagram found no place");
            }
            Input::Due => {
                let soon = self.home.clock.now().plus_ms(CROWDED_RETRY_MS);
                self.home.deadlines.arm(soon, key);
            }
            Input::Asked(asked) => asked.question.refuse(Unserved::Busy),
            Input::Renamed(renamed) => renamed.refuse(Unserved::Busy),
        }
    }
}

impl Actor for Registry {
    type Context = Context<Self>;
}

/// All registries of the process exist: each may hear datagrams that are another's.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Meet(pub(crate) Arc<[Addr<Registry>]>);

impl Handler<Meet> for Registry {
    type Result = ();

    fn handle(&mut self, Meet(registries): Meet, ctx: &mut Context<Self>) {
        self.neighbours = Neighbours::new(registries);
        let plain = ctx.add_stream(self.home.sockets.plain.arrivals());
        let bare = ctx.add_stream(self.home.sockets.bare.arrivals());
        let alarm = ctx.add_stream(Alarm::new(
            self.home.deadlines.clone(),
            self.home.clock.clone(),
        ));
        self.heeded = vec![plain, bare, alarm];
        ctx.run_interval(TELL_EVERY, |registry, _| registry.tally.tell());
        ctx.run_interval(PUBLISH_EVERY, |registry, _| registry.publish());
        self.restore_all(ctx);
    }
}

impl Handler<Post> for Registry {
    type Result = ();

    fn handle(&mut self, post: Post, ctx: &mut Context<Self>) {
        for hint in post.hints {
            self.router().take_hint(hint);
        }
        for parcel in post.parcels {
            let (route, hint) = self.router().take_in(parcel);
            self.follow(route, ctx);
            if let Some(hint) = hint {
                self.neighbours.tell(hint);
            }
        }
        self.end_turn();
    }
}

impl StreamHandler<Arrived> for Registry {
    fn handle(&mut self, Arrived(via): Arrived, ctx: &mut Context<Self>) {
        match self.inbox.fill(self.home.sockets.of(via)) {
            Ok(()) => self.take_batch(ctx),
            // An ICMP error of an earlier send comes up here; it concerns one peer.
            Err(error) => debug!(%error, "the socket reported an error"),
        }
        self.end_turn();
    }

    fn finished(&mut self, _: &mut Context<Self>) {
        error!("a socket is gone");
    }
}

impl StreamHandler<Rang> for Registry {
    fn handle(&mut self, _: Rang, ctx: &mut Context<Self>) {
        let now = self.home.clock.now();
        for _ in 0..WAKES_PER_TURN {
            match self.home.deadlines.take_due(now) {
                // A device that moved out has no deadline any more.
                Some(key) if self.residents.get(key).is_some() => self.hand(key, Input::Due, ctx),
                Some(_) => {}
                None => return,
            }
        }
    }
}

/// A question for a device of this arbiter.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ask {
    pub(crate) key: DeviceKey,
    pub(crate) asked: Box<Asked>,
    /// Until the registry has its turn.
    pub(crate) waiting: Waiting,
}

impl Handler<Ask> for Registry {
    type Result = ();

    fn handle(&mut self, ask: Ask, ctx: &mut Context<Self>) {
        drop(ask.waiting);
        self.hand(ask.key, Input::Asked(ask.asked), ctx);
    }
}

/// A device's actor ended, or could.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ended {
    pub(crate) key: DeviceKey,
    pub(crate) generation: u32,
    pub(crate) ending: Ending,
    /// The span of what it was at, where that matters.
    pub(crate) span: Span,
}

/// Why a device's actor ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// It has nothing to do that the store does not know; it handled so many inputs.
    Idle { handled: u64 },
    /// It panicked.
    Panicked,
    /// The device was removed.
    Retired,
    /// Its step was not saved.
    Unsaved,
}

impl Handler<Ended> for Registry {
    type Result = ();

    fn handle(&mut self, ended: Ended, ctx: &mut Context<Self>) {
        let Some(Resident::Live(live)) = self.residents.get(ended.key) else {
            return;
        };
        if live.generation != ended.generation {
            return;
        }
        match ended.ending {
            // With an input on its way, it is not idle.
            Ending::Idle { handled } if live.sent != handled => {}
            Ending::Idle { .. } | Ending::Retired => self.move_out(ended.key),
            Ending::Unsaved => self.restore_soon(ended.key, ctx),
            Ending::Panicked => ended.span.in_scope(|| self.after_panic(ended.key, ctx)),
        }
    }
}

/// Heeds no datagram and no deadline any more, and brings nobody back unasked; questions are
/// still answered.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Deafen;

impl Handler<Deafen> for Registry {
    type Result = MessageResult<Deafen>;

    fn handle(&mut self, _: Deafen, ctx: &mut Context<Self>) -> MessageResult<Deafen> {
        for stream in self.heeded.drain(..) {
            ctx.cancel_future(stream);
        }
        self.starting = None;
        self.tally.tell();
        MessageResult(())
    }
}

/// Lets everything leave that devices have said.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Finish;

impl Handler<Finish> for Registry {
    type Result = MessageResult<Finish>;

    fn handle(&mut self, _: Finish, _: &mut Context<Self>) -> MessageResult<Finish> {
        self.home.outbox.empty();
        MessageResult(())
    }
}

/// Ends the registry and its devices.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Leave;

impl Handler<Leave> for Registry {
    type Result = MessageResult<Leave>;

    fn handle(&mut self, _: Leave, ctx: &mut Context<Self>) -> MessageResult<Leave> {
        ctx.stop();
        MessageResult(())
    }
}

fn heard(arrival: Arrival) -> Input {
    Input::Heard(Box::new(arrival))
}
