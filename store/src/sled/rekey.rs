//! How are all secrets of a store sealed with another master key, while no service runs?
//!
//! Row by row: a secret is sealed with one key or with the other, so a run that was interrupted is
//! repeated and continues where it was. Which key is in use changes only after the last row is
//! durable; that is the caller's part.

use sled::Batch;

use super::check::OfflineStore;
use super::fault::Fault;
use super::key::{self, Table};
use super::kv::{self, Value};
use crate::record::Unreadable;
use crate::rekey::{RekeyError, RekeyReport, Resealer};
use crate::sealed::MasterKey;

/// The rows that are written at once.
const ROWS_AT_ONCE: usize = 256;

/// Seals the secrets of the row with a key anew.
type Reseal = fn(&mut Resealer<'_>, &[u8], &[u8]) -> Result<Vec<u8>, Unreadable>;

/// The tables with secrets.
const TABLES: [(Table, Reseal); 5] = [
    (Table::Device, |to, _, value| to.profile(value)),
    (Table::Destination, |to, _, value| to.destination(value)),
    (Table::Idempotency, idempotency_record),
    (Table::ServerKey, |to, _, value| to.server_key(value)),
    (Table::BootstrapConfigOfDevice, bootstrap_config),
];

impl OfflineStore {
    /// Seals every secret with another key. They are durable when this returns.
    pub fn rekey(&self, from: &MasterKey, to: &MasterKey) -> Result<RekeyReport, RekeyError> {
        let failed = |fault: Fault| RekeyError(format!("{fault}; run `signalbox check`"));
        let mut resealer = Resealer::new(from, to);
        for (table, reseal) in TABLES {
            let resealed = self.reseal_all(table, reseal, &mut resealer);
            resealed.map_err(failed)?;
        }
        self.db().flush().map_err(|error| failed(error.into()))?;
        Ok(resealer.report)
    }

    fn reseal_all(
        &self,
        table: Table,
        reseal: Reseal,
        resealer: &mut Resealer<'_>,
    ) -> Result<(), Fault> {
        let db = self.db();
        let mut batch = Batch::default();
        let mut rows = 0;
        for row in db.scan_prefix(table.prefix()) {
            let (key, head) = row?;
            let Some(value) = kv::load(&**db, &key)? else {
                continue;
            };
            let before = resealer.report.resealed;
            let value = reseal(resealer, &key, &value)?;
            if resealer.report.resealed == before {
                continue;
            }
            if kv::pieces_behind(&head) == 0 {
                batch.insert(key, value);
            } else {
                // A secret keeps its length, so the value has as many pieces as before.
                let Value { head, pieces } = Value::cut(&key, &value);
                for (key, piece) in pieces {
                    batch.insert(key, piece);
                }
                batch.insert(key, head);
            }
            rows += 1;
            if rows == ROWS_AT_ONCE {
                db.apply_batch(std::mem::take(&mut batch))?;
                rows = 0;
            }
        }
        Ok(db.apply_batch(batch)?)
    }
}

fn bootstrap_config(
    resealer: &mut Resealer<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<u8>, Unreadable> {
    let device = key::bootstrap::device_of(key).ok_or(Unreadable::Damaged("a device's key"))?;
    resealer.bootstrap_config(device, value)
}

fn idempotency_record(
    resealer: &mut Resealer<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<u8>, Unreadable> {
    let of_call = key::idempotency::key_of(key).ok_or(Unreadable::Damaged("a call's key"))?;
    let device = key::idempotency::device_of(key, of_call)?;
    resealer.idempotency_record(of_call, device, value)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use engine::MqttVersion;
    use engine::bootstrap::{BootstrapConfig, BootstrapScope};
    use engine::change::{Batch, Change};
    use engine::delivery::destination::{
        Broker, BrokerCommands, ClientCertificate, Destination, Header, JsonPayload, Target,
        Webhook,
    };
    use engine::idempotency::{
        CallFingerprint, CreatedByCall, IdempotencyKey, IdempotencyRecord, IdempotentCall,
    };
    use engine::ids::DeviceKey;
    use engine::profile::Profile;
    use engine::sealed::Sealed;
    use engine::sealing::{HoldsSecrets as _, SecretOwner};

    use super::*;
    use crate::conformance::bootstrap::config;
    use crate::conformance::samples::{acme, at, batch, customer, destination, device, known};
    use crate::conformance::wait;
    use crate::{Commit, DeviceReads, DirectoryReads, Maintenance as _, Options, SledStore};

    /// The secrets of the filled store: three keys of a device, a header and a secret of a webhook,
    /// a password and a key for a broker, a response, the key of the service, and a key for the
    /// bootstrap of the device.
    const SECRETS: u64 = 10;

    fn call() -> IdempotencyKey {
        IdempotencyKey::from_bytes([7; 16])
    }

    #[test]
    fn every_secret_opens_with_the_new_key_alone() {
        let home = tempfile::tempdir().unwrap();
        fill(home.path(), &key(1));
        let report = rekey(home.path(), &key(1), &key(2));
        let whole = RekeyReport {
            resealed: SECRETS,
            ..RekeyReport::default()
        };
        assert_eq!(report, whole);
        let secrets = opened(home.path(), &key(2));
        assert_eq!(secrets.len(), SECRETS as usize);
        assert!(secrets.iter().all(Option::is_some), "{secrets:?}");
        assert!(opened(home.path(), &key(1)).iter().all(Option::is_none));
        let found = OfflineStore::open(home.path()).unwrap().check().findings;
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn an_interrupted_run_is_continued_and_a_repeated_one_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        fill(home.path(), &key(1));
        // A run that ended after the devices, which are the first.
        let store = OfflineStore::open(home.path()).unwrap();
        let (from, to) = (key(1), key(2));
        let mut resealer = Resealer::new(&from, &to);
        let [(devices, reseal), ..] = TABLES;
        store.reseal_all(devices, reseal, &mut resealer).unwrap();
        assert_eq!(resealer.report.resealed, 3);
        drop(store);
        let report = rekey(home.path(), &key(1), &key(2));
        assert_eq!((report.resealed, report.already), (SECRETS - 3, 3));
        let report = rekey(home.path(), &key(1), &key(2));
        assert_eq!((report.resealed, report.already), (0, SECRETS));
        let secrets = opened(home.path(), &key(2));
        assert!(secrets.iter().all(Option::is_some), "{secrets:?}");
    }

    #[test]
    fn a_secret_of_a_third_key_is_left_and_counted() {
        let home = tempfile::tempdir().unwrap();
        fill(home.path(), &key(3));
        let report = rekey(home.path(), &key(1), &key(2));
        assert_eq!((report.resealed, report.unopened), (0, SECRETS));
        assert!(opened(home.path(), &key(3)).iter().all(Option::is_some));
    }

    fn rekey(path: &Path, from: &MasterKey, to: &MasterKey) -> RekeyReport {
        OfflineStore::open(path).unwrap().rekey(from, to).unwrap()
    }

    fn key(byte: u8) -> MasterKey {
        MasterKey::from_bytes(&[byte; 32])
    }

    fn fill(path: &Path, key: &MasterKey) {
        let store = SledStore::open(Options::at(path)).unwrap();
        let put = |batch: Batch| assert_eq!(wait(store.commit(batch)), Ok(()));
        put(batch(vec![Change::PutCustomer(customer("acme"))]));
        put(known(&meter(key)));
        for destination in [webhook(key), broker(key)] {
            put(batch(vec![Change::PutDestination(Box::new(destination))]));
        }
        put(batch(vec![Change::PutIdempotencyRecord(response(key))]));
        let scope = BootstrapScope::Device(device(&acme(), 1).key());
        let config = Box::new(bootstrap_config_of(device(&acme(), 1).key(), key));
        let change = Change::PutBootstrapConfig { scope, config };
        put(batch(vec![change]));
        let of_service = key.seal(b"a secret", &SecretOwner::ServerKey.context());
        assert_eq!(wait(store.server_key(of_service.clone())), Ok(of_service));
    }

    /// What the secrets of the store are, as far as a key opens them.
    fn opened(path: &Path, key: &MasterKey) -> Vec<Option<Vec<u8>>> {
        let store = SledStore::open(Options::at(path)).unwrap();
        let mut secrets = Vec::new();
        let mut open = |owner: SecretOwner<'_>, sealed: &mut Sealed| {
            let plain = key.open(sealed, &owner.context());
            secrets.push(plain.ok().map(|plain| plain.to_vec()));
        };
        let meter = wait(store.profile(device(&acme(), 1).key())).unwrap();
        meter.unwrap().visit_secrets(&mut open);
        for mut destination in wait(store.destinations_of(acme())).unwrap() {
            destination.visit_secrets(&mut open);
        }
        for mut record in wait(store.idempotency_records(call())).unwrap() {
            record.visit_secrets(&mut open);
        }
        let other = Sealed::from_bytes(Box::default());
        let mut of_service = wait(store.server_key(other)).unwrap();
        open(SecretOwner::ServerKey, &mut of_service);
        let meter = device(&acme(), 1).key();
        let config = wait(store.bootstrap_config(BootstrapScope::Device(meter))).unwrap();
        for key in config.unwrap().keys_mut() {
            open(SecretOwner::Bootstrap(meter), key);
        }
        secrets
    }

    /// The device of the samples with two keys.
    fn meter(key: &MasterKey) -> Profile {
        let mut meter = device(&acme(), 1);
        meter.visit_secrets(&mut |owner, sealed| *sealed = key.seal(b"psk", &owner.context()));
        meter
    }

    fn bootstrap_config_of(device: DeviceKey, key: &MasterKey) -> BootstrapConfig {
        let mut config = config(1111);
        for secret in config.keys_mut() {
            *secret = key.seal(b"a secret", &SecretOwner::Bootstrap(device).context());
        }
        config
    }

    fn webhook(key: &MasterKey) -> Destination {
        let mut webhook = destination(&acme(), 1);
        let empty = || Sealed::from_bytes(Box::default());
        let header = Header {
            name: "X-Key".into(),
            value: empty(),
        };
        webhook.target = Target::Webhook(Webhook {
            // The value has several pieces.
            url: format!("https://example.com/{}", "x".repeat(6_000)).into(),
            headers: [header].into(),
            secret: Some(empty()),
            json: JsonPayload::AsText,
            batching: None,
        });
        seal(webhook, key)
    }

    fn broker(key: &MasterKey) -> Destination {
        let mut broker = destination(&acme(), 2);
        let empty = || Sealed::from_bytes(Box::default());
        broker.target = Target::Broker(Box::new(Broker {
            url: "mqtts://example.com".into(),
            topic_prefix: "signalbox".into(),
            version: MqttVersion::V5,
            username: Some("me".into()),
            password: Some(empty()),
            ca: None,
            certificate: Some(ClientCertificate {
                chain: "chain".into(),
                key: empty(),
            }),
            commands: BrokerCommands::Off,
            json: JsonPayload::AsText,
        }));
        seal(broker, key)
    }

    fn seal(mut destination: Destination, key: &MasterKey) -> Destination {
        destination.visit_secrets(&mut |owner, sealed| {
            *sealed = key.seal(b"a secret", &owner.context());
        });
        destination
    }

    /// A response that is longer than a piece: such a row is not cut.
    fn response(key: &MasterKey) -> IdempotencyRecord {
        let body = vec![b'x'; 10_000];
        let sealed = key.seal(&body, &SecretOwner::Call(call()).context());
        IdempotencyRecord {
            call: IdempotentCall {
                key: call(),
                fingerprint: CallFingerprint::of(&[b"body"]),
            },
            created: CreatedByCall::Answered(sealed),
            at: at(1),
        }
    }
}
