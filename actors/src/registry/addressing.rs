//! Whose is data that names nobody? The device's that has the address it comes from, which the
//! store is asked. What waits for its answer, and in which order, is `engine::registry::lanes`.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use actix::{ActorFutureExt as _, AsyncContext as _, Context, WrapFuture as _};
use engine::datagram::Arrival;
use engine::registry::lanes::{Joined, together};
use engine::registry::{self, Behind, Sorted};
use store::Unavailable;

use crate::registry::Registry;

/// How long what came behind a question waits for the next one, so that it is handed over together:
/// about as long as a commit takes.
const PAUSE: Duration = Duration::from_millis(4);

impl Registry {
    /// Finds the device that has the address some data comes from.
    pub(super) fn look_behind(&mut self, arrival: Arrival, ctx: &mut Context<Self>) {
        let peer = arrival.peer();
        match self.lanes.join(arrival) {
            Joined::First => {
                self.lookups += 1;
                self.ask_behind(peer.ip(), ctx);
            }
            Joined::Behind => self.lookups += 1,
            Joined::Crowded(arrival) => {
                self.dispatch(peer, Sorted::ToAddress(arrival).put_off(), ctx);
            }
        }
    }

    fn ask_behind(&mut self, address: IpAddr, ctx: &mut Context<Self>) {
        self.lanes.ask(address);
        let behind = self.home.store.at_address(address);
        ctx.spawn(behind.into_actor(self).map(move |behind, registry, ctx| {
            let taken = registry.lanes.take_asked(address);
            registry.lookups -= taken.len();
            registry.give_all(taken, behind, ctx);
            if registry.lanes.has(address) {
                ctx.run_later(PAUSE, move |registry, ctx| {
                    registry.ask_behind(address, ctx)
                });
            }
            registry.end_turn();
        }));
    }

    fn give_all(
        &mut self,
        taken: VecDeque<Arrival>,
        behind: Result<Behind, Unavailable>,
        ctx: &mut Context<Self>,
    ) {
        match behind {
            Ok(Behind::One(key)) => {
                for arrival in together(taken) {
                    let route = self.router().to_device(key, arrival);
                    self.follow(route, ctx);
                }
            }
            Ok(Behind::Several(key)) => {
                for arrival in taken {
                    let peer = arrival.peer();
                    match registry::ambiguous(arrival) {
                        Ok(arrival) => {
                            let route = self.router().to_device(key, arrival);
                            self.follow(route, ctx);
                        }
                        Err(fate) => self.dispatch(peer, Sorted::Ignored(fate), ctx),
                    }
                }
            }
            Ok(Behind::Nobody) => {
                for arrival in taken {
                    let told = registry::unknown_address(&arrival);
                    self.dispatch(arrival.peer(), told, ctx);
                }
            }
            Err(Unavailable) => {
                for arrival in taken {
                    let peer = arrival.peer();
                    self.dispatch(peer, Sorted::ToAddress(arrival).put_off(), ctx);
                }
            }
        }
    }
}
