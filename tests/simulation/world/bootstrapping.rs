//! How the service prepares the bootstraps of devices: it reads the profile, makes a key, and saves
//! the key before the device may get it.

use engine::associations::server_key::ServerKey;
use engine::bootstrap::{BootstrapFault, BootstrapOrder, BootstrapPlan};
use engine::directory::bootstrap::{BootstrapKeys, FreshKey, ServiceUris, prepare};
use engine::key_pair::NoKey;
use engine::moment::Timestamp;
use engine::sealed::Sealed;

use super::{Activity, World};
use crate::disk::{Author, PreparedStep};
use crate::event::Event;
use crate::service::{ArbiterRun, CommitResult};
use crate::{fleet, settings};

/// How often a bootstrap is prepared anew because the profile changed meanwhile.
const TRIES: u32 = 3;

impl World {
    /// Prepares what a device is written.
    pub(super) fn prepare_bootstrap(
        &mut self,
        at: ArbiterRun,
        (who, step): (usize, u64),
        order: &BootstrapOrder,
    ) {
        self.laws.bootstraps.asked(who, order.peer);
        self.census.bootstraps_asked += 1;
        self.read_for_bootstrap(PreparedStep {
            at,
            who,
            step,
            tries_left: TRIES - 1,
        });
    }

    fn read_for_bootstrap(&mut self, of: PreparedStep) {
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::BootstrapRead { of });
    }

    pub(super) fn bootstrap_read(&mut self, of: PreparedStep) {
        if !self.service.has(of.at) {
            return;
        }
        if self.read().is_err() || !self.disk.durable.exists(of.who) {
            return self.bootstrap_prepared(of, Err(BootstrapFault::Unstored));
        }
        let bytes = [self.rng.number(), self.rng.number()].map(u64::to_be_bytes);
        let bytes = bytes.concat();
        // No world has accounts with raw public keys or certificates.
        let keys = BootstrapKeys {
            psk: FreshKey {
                sealed: Sealed::from_bytes(bytes.clone().into()),
                bytes: bytes.into(),
            },
            pair: &|| Err(NoKey),
            server: ServerKey::from_scalar(&[1; 32]).expect("it is below the order of P-256"),
            open: &|_| None,
        };
        let uris = ServiceUris::default().or_at(Some("signalbox.example"), (5_683, 5_684));
        let profile = self.disk.durable.profile(of.who);
        let now = Timestamp::from_ms(self.now_ms);
        let is_secured = fleet::is_secured(of.who, self.settings.kinds);
        let with_own_key = settings::with_own_key(self.settings.lifetime_s.0);
        let config = match is_secured {
            true => &with_own_key,
            false => &self.settings.bootstrap,
        };
        match prepare(profile, config, &uris, &keys, now) {
            Err(fault) => self.bootstrap_prepared(of, Err(fault)),
            Ok(prepared) => match prepared.batch {
                Some(batch) => {
                    self.commit_as(Author::Bootstrap(of, Box::new(prepared.plan)), batch);
                    self.change_meanwhile(of.who);
                }
                None => self.bootstrap_prepared(of, Ok(prepared.plan)),
            },
        }
    }

    /// Now and then the customer changes a device while its key is being saved.
    fn change_meanwhile(&mut self, who: usize) {
        if self.activity == Activity::Lively && self.census.bootstraps_asked.is_multiple_of(16) {
            self.readdress(who);
        }
    }

    /// The key of a bootstrap is durable, or is not saved.
    pub(super) fn bootstrap_committed(
        &mut self,
        of: PreparedStep,
        plan: BootstrapPlan,
        receipt: CommitResult,
    ) {
        match (receipt, of.tries_left.checked_sub(1)) {
            (CommitResult::Durable, _) => self.bootstrap_prepared(of, Ok(plan)),
            (CommitResult::Conflict, Some(tries_left)) => {
                self.census.bootstraps_prepared_again += 1;
                self.read_for_bootstrap(PreparedStep { tries_left, ..of });
            }
            (CommitResult::Conflict | CommitResult::Unsaved, _) => {
                self.bootstrap_prepared(of, Err(BootstrapFault::Unstored));
            }
        }
    }

    fn bootstrap_prepared(
        &mut self,
        of: PreparedStep,
        prepared: Result<BootstrapPlan, BootstrapFault>,
    ) {
        let PreparedStep { at, who, step, .. } = of;
        self.serve(at, |arbiter, turn| {
            arbiter.bootstrap_prepared(who, step, prepared, turn);
        });
    }
}
