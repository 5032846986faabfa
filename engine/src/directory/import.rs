//! Which devices of an import are created? Decided line by line, in order, for a batch of lines.
//!
//! The first line of a device wins. A later line with one of its unique names is refused. A line
//! that equals the existing device changes nothing, so that an import can be sent twice.

use std::collections::{HashMap, HashSet};

use crate::change::{Batch, Change, Counter, CounterDelta, Expect, UniqueName};
use crate::credentials::Credential;
use crate::directory::Decision;
use crate::directory::device::reportable;
use crate::ids::{CustomerId, DeviceKey};
use crate::profile::Profile;
use crate::sealed::Sealed;
use crate::sealing::SecretOwner;

/// The existing devices that were read; names that are not in it are free.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExistingDevices {
    /// Those of the drafts' names that devices have.
    pub key_by_name: HashSet<UniqueName>,
    /// The devices that exist under the drafts' ids.
    pub profile_by_key: HashMap<DeviceKey, Profile>,
}

/// The outcome of a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LineOutcome {
    /// Its device is created.
    Created,
    /// Its device exists and equals the line.
    Unchanged,
    /// Other devices have these of its unique names.
    Refused(Vec<UniqueName>),
}

/// Whether two sealed secrets of an owner are the same; only the holder of the master key knows.
pub type IsSameSecret<'a> = dyn Fn(SecretOwner<'_>, &Sealed, &Sealed) -> bool + 'a;

/// Decides a batch of drafts of one customer; the answer has the outcome of each draft, in order.
///
/// A batch without changes need not be committed.
pub fn import_devices<'a>(
    customer: &CustomerId,
    drafts: impl IntoIterator<Item = &'a Profile>,
    (known, is_same_secret): (&ExistingDevices, &IsSameSecret<'_>),
) -> Decision<Vec<LineOutcome>> {
    let mut import = Import {
        known,
        is_same_secret,
        key_by_name: HashSet::new(),
        created_by_key: HashMap::new(),
        expects: vec![Expect::Taken(UniqueName::Customer(customer.clone()))],
        changes: Vec::new(),
    };
    let outcomes = drafts.into_iter().map(|draft| import.decide(draft));
    let answer = outcomes.collect();
    let created = i64::try_from(import.changes.len()).expect("a batch is bounded");
    let counter = Counter::Devices(customer.clone());
    let batch = Batch {
        expects: import.expects,
        changes: import.changes,
        adds: vec![CounterDelta {
            counter,
            delta: created,
        }],
        ..Batch::default()
    };
    Decision { batch, answer }
}

/// A batch that is being decided.
struct Import<'a> {
    known: &'a ExistingDevices,
    is_same_secret: &'a IsSameSecret<'a>,
    /// The unique names of devices of earlier lines.
    key_by_name: HashSet<UniqueName>,
    created_by_key: HashMap<DeviceKey, &'a Profile>,
    expects: Vec<Expect>,
    changes: Vec<Change>,
}

impl<'a> Import<'a> {
    fn decide(&mut self, draft: &'a Profile) -> LineOutcome {
        let key = draft.key();
        let created = self.created_by_key.get(&key).copied();
        let existing = created.or_else(|| self.known.profile_by_key.get(&key));
        if existing.is_some_and(|existing| self.is_unchanged(existing, draft)) {
            return LineOutcome::Unchanged;
        }
        let names = UniqueName::all_of(draft);
        let is_taken = |name: &&UniqueName| {
            self.key_by_name.contains(name) || self.known.key_by_name.contains(name)
        };
        // Devices of earlier lines are of the same customer, so they may have the address, too.
        let address = UniqueName::address_of(draft);
        let is_elsewhere = |address: &UniqueName| self.known.key_by_name.contains(address);
        let taken = names.iter().filter(is_taken).cloned();
        let taken: Vec<UniqueName> = taken.chain(address.clone().filter(is_elsewhere)).collect();
        if !taken.is_empty() {
            return LineOutcome::Refused(reportable(draft, taken));
        }
        let wanted = names.iter().cloned().chain(address);
        self.expects.extend(wanted.map(Expect::Free));
        self.key_by_name.extend(names);
        self.created_by_key.insert(key, draft);
        self.changes.push(Change::PutDevice {
            was: None,
            profile: Box::new(draft.clone()),
        });
        LineOutcome::Created
    }

    /// Whether a device equals a draft with the same id in all fields that the draft has.
    fn is_unchanged(&self, existing: &Profile, draft: &Profile) -> bool {
        let compared = Profile {
            number: draft.number,
            credentials: draft.credentials.clone(),
            created_at: draft.created_at,
            ..existing.clone()
        };
        compared == *draft && self.has_psk_of(existing, draft) && has_public_key_of(existing, draft)
    }

    /// Whether a device has the pre-shared key of a draft, if the draft has one.
    fn has_psk_of(&self, existing: &Profile, draft: &Profile) -> bool {
        let Some(Credential { key: wanted, .. }) = &draft.credentials.psk else {
            return true;
        };
        let owner = SecretOwner::Device(draft.key());
        let mut keys = existing.credentials.psks_of(&wanted.identity);
        keys.any(|psk| (self.is_same_secret)(owner, &psk.key, &wanted.key))
    }
}

/// Whether a device has the public key of a draft, if the draft has one.
fn has_public_key_of(existing: &Profile, draft: &Profile) -> bool {
    let wanted = draft.credentials.public_key.as_ref();
    wanted.is_none_or(|wanted| existing.credentials.has_public_key(&wanted.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::RawPublicKey;
    use crate::directory::credentials::{with_psk, with_public_key};
    use crate::directory::device::{NewDevice, draft_device};
    use crate::directory::psk::PskIdentity;
    use crate::ids::{DeviceId, Endpoint, Iccid, Imsi, Msisdn};
    use crate::moment::{Moment, Timestamp};
    use crate::sealed::Sealed;
    use crate::tags::{Tag, Tags};

    #[test]
    fn every_device_is_created_if_its_names_are_free() {
        let drafts = [draft("a"), draft("b")];
        let decided = decided(&drafts, &ExistingDevices::default());
        let mut expects = vec![Expect::Taken(UniqueName::Customer(acme()))];
        let names = drafts.iter().flat_map(UniqueName::all_of);
        expects.extend(names.map(Expect::Free));
        let put = |profile: &Profile| Change::PutDevice {
            was: None,
            profile: Box::new(profile.clone()),
        };
        let batch = Batch {
            expects,
            changes: drafts.iter().map(put).collect(),
            adds: vec![CounterDelta {
                counter: Counter::Devices(acme()),
                delta: 2,
            }],
            ..Batch::default()
        };
        let answer = vec![LineOutcome::Created, LineOutcome::Created];
        assert_eq!(decided, Decision { batch, answer });
    }

    #[test]
    fn a_later_line_is_refused_for_each_name_it_shares_with_an_earlier_one() {
        let first = whole(1);
        let later = whole(2);
        let endpoint = first.endpoint.clone();
        let cases = [
            (
                Profile {
                    iccid: first.iccid.clone(),
                    ..later.clone()
                },
                UniqueName::Iccid(first.iccid.clone()),
            ),
            (
                Profile {
                    imsi: first.imsi.clone(),
                    ..later.clone()
                },
                UniqueName::Imsi(first.imsi.clone().unwrap()),
            ),
            (
                Profile {
                    msisdn: first.msisdn.clone(),
                    ..later.clone()
                },
                UniqueName::Msisdn(first.msisdn.clone().unwrap()),
            ),
            (
                Profile {
                    endpoint: endpoint.clone(),
                    ..later.clone()
                },
                UniqueName::Endpoint(endpoint),
            ),
            (
                Profile {
                    device: first.device.clone(),
                    ..later.clone()
                },
                UniqueName::Device(first.key()),
            ),
        ];
        for (second, name) in cases {
            let third = whole(3);
            let outcomes = outcomes(&[first.clone(), second, third], &ExistingDevices::default());
            let refused = LineOutcome::Refused(vec![name]);
            assert_eq!(
                outcomes,
                [LineOutcome::Created, refused, LineOutcome::Created]
            );
        }
    }

    #[test]
    fn a_psk_identity_that_a_key_took_is_reported_by_its_own_name() {
        let identity = UniqueName::PskIdentity("a".into());
        let known = ExistingDevices {
            key_by_name: HashSet::from([identity.clone()]),
            ..ExistingDevices::default()
        };
        assert_eq!(
            outcomes(&[draft("a")], &known),
            [LineOutcome::Refused(vec![identity])]
        );
    }

    #[test]
    fn a_line_that_equals_the_device_changes_nothing() {
        let existing = Profile {
            number: 7,
            created_at: Timestamp::from_ms(1),
            ..keyed(&whole(1), "of its own", b"key")
        };
        let known = devices_with(&existing);
        let other_name = Profile {
            name: Some("Attic".into()),
            ..whole(1)
        };
        let other_tags = Profile {
            tags: Tags::default(),
            ..whole(1)
        };
        let decided = decided(&[whole(1), other_name, other_tags], &known);
        assert_eq!(decided.batch.changes, []);
        let taken = UniqueName::all_of(&whole(1))
            .into_iter()
            .filter(|name| known.key_by_name.contains(name))
            .collect();
        let refused = LineOutcome::Refused(taken);
        assert_eq!(
            decided.answer,
            [LineOutcome::Unchanged, refused.clone(), refused]
        );
    }

    #[test]
    fn a_line_with_a_key_equals_the_device_that_has_it() {
        let existing = keyed(&draft("a"), "of its own", b"key");
        let known = devices_with(&existing);
        let lines = [
            existing.clone(),
            keyed(&draft("a"), "of its own", b"other key"),
            keyed(&draft("a"), "of another", b"key"),
            keyed(&draft("b"), "of b", b"key"),
            keyed(&draft("c"), "of b", b"key"),
        ];
        let outcomes = outcomes(&lines, &known);
        let is_refused = |at: usize| matches!(outcomes[at], LineOutcome::Refused(_));
        assert_eq!(outcomes[0], LineOutcome::Unchanged);
        assert!(is_refused(1) && is_refused(2));
        assert_eq!(outcomes[3], LineOutcome::Created);
        let identity = UniqueName::PskIdentity("of b".into());
        assert_eq!(outcomes[4], LineOutcome::Refused(vec![identity]));

        let rolled_over = keyed(&existing, "of its own", b"new key");
        let known = devices_with(&rolled_over);
        assert_eq!(
            super::tests::outcomes(&lines[..1], &known),
            [LineOutcome::Unchanged],
            "the previous key is valid"
        );
    }

    #[test]
    fn a_line_with_a_public_key_equals_the_device_that_has_it() {
        let existing = proving(&keyed(&draft("a"), "of its own", b"key"), 1);
        let known = devices_with(&existing);
        let lines = [
            proving(&draft("a"), 1),
            existing.clone(),
            draft("a"),
            proving(&draft("a"), 2),
            proving(&draft("b"), 1),
            proving(&draft("c"), 3),
            proving(&draft("d"), 3),
        ];
        let taken = |key| LineOutcome::Refused(vec![UniqueName::PublicKey(public_key(key))]);
        let outcomes = outcomes(&lines, &known);
        assert_eq!(outcomes[..3], [const { LineOutcome::Unchanged }; 3]);
        assert!(matches!(outcomes[3], LineOutcome::Refused(_)));
        assert_eq!(outcomes[4..], [taken(1), LineOutcome::Created, taken(3)]);
    }

    #[test]
    fn a_line_repeated_in_one_batch_changes_nothing() {
        let decided = decided(&[draft("a"), draft("a")], &ExistingDevices::default());
        assert_eq!(
            decided.answer,
            [LineOutcome::Created, LineOutcome::Unchanged]
        );
        assert_eq!(decided.batch.changes.len(), 1);
        assert_eq!(decided.batch.adds[0].delta, 1);
    }

    #[test]
    fn a_refused_line_leaves_its_names_to_later_ones() {
        let known = devices_with(&draft("taken"));
        let refused = Profile {
            iccid: Iccid::parse("taken").unwrap(),
            ..draft("a")
        };
        let outcomes = outcomes(&[refused, draft("a")], &known);
        let taken = LineOutcome::Refused(vec![UniqueName::Iccid(Iccid::parse("taken").unwrap())]);
        assert_eq!(outcomes, [taken, LineOutcome::Created]);
    }

    #[test]
    fn refusals_are_in_the_order_of_their_lines() {
        let known = devices_with(&draft("b"));
        let other_b = Profile {
            name: Some("another".into()),
            ..draft("b")
        };
        let drafts = [draft("a"), other_b.clone(), draft("c"), other_b, draft("d")];
        let outcomes = outcomes(&drafts, &known);
        let refused: Vec<bool> = outcomes
            .iter()
            .map(|outcome| matches!(outcome, LineOutcome::Refused(_)))
            .collect();
        assert_eq!(refused, [false, true, false, true, false]);
    }

    fn outcomes(drafts: &[Profile], known: &ExistingDevices) -> Vec<LineOutcome> {
        decided(drafts, known).answer
    }

    /// Here secrets are their own sealed form.
    fn decided(drafts: &[Profile], known: &ExistingDevices) -> Decision<Vec<LineOutcome>> {
        let same = |_: SecretOwner<'_>, one: &Sealed, other: &Sealed| one == other;
        import_devices(&acme(), drafts, (known, &same))
    }

    fn keyed(device: &Profile, identity: &str, key: &[u8]) -> Profile {
        let identity = PskIdentity::parse(identity).unwrap();
        let key = Sealed::from_bytes(key.into());
        with_psk(device, Some(&identity), key, Timestamp::from_ms(2))
    }

    fn proving(device: &Profile, key: u8) -> Profile {
        with_public_key(device, public_key(key), Timestamp::from_ms(2))
    }

    fn public_key(byte: u8) -> RawPublicKey {
        let mut point = [byte; RawPublicKey::POINT_BYTES];
        point[0] = 4;
        RawPublicKey::from_point(&point).unwrap()
    }

    fn devices_with(existing: &Profile) -> ExistingDevices {
        ExistingDevices {
            key_by_name: UniqueName::all_of(existing).into_iter().collect(),
            profile_by_key: HashMap::from([(existing.key(), existing.clone())]),
        }
    }

    fn acme() -> CustomerId {
        CustomerId::parse("acme").unwrap()
    }

    fn draft(id: &str) -> Profile {
        drafted(NewDevice {
            device: Some(DeviceId::parse(id).unwrap()),
            ..NewDevice::default()
        })
    }

    /// A device with every unique name; devices of different numbers share none.
    fn whole(number: u32) -> Profile {
        drafted(NewDevice {
            device: Some(DeviceId::parse(&format!("meter-{number}")).unwrap()),
            iccid: Some(Iccid::parse(&format!("8988{number}")).unwrap()),
            imsi: Some(Imsi::parse(&format!("9014{number}")).unwrap()),
            msisdn: Some(Msisdn::parse(&format!("4915{number}")).unwrap()),
            ip: Some([10, 0, 0, 1].into()),
            endpoint: Some(Endpoint::parse(&format!("urn:dev:{number}")).unwrap()),
            name: Some("Cellar".into()),
            tags: Tags::of([Tag::parse("site:berlin").unwrap()]).unwrap(),
            ..NewDevice::default()
        })
    }

    fn drafted(new: NewDevice) -> Profile {
        let mut moment = Moment::new(Timestamp::from_ms(1_000), 7);
        draft_device(&mut moment, &acme(), new).unwrap()
    }
}
