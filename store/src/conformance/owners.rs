//! Which owner may write to a shard?

use engine::change::{Batch, Change, Owner};
use engine::ids::{Partition, Shard};
use engine::sealed::Sealed;

use super::samples::{acme, batch, customer};
use super::{TestBed, commit, wait};
use crate::CommitError;

pub(super) fn earlier_epoch_is_fenced(ground: &TestBed<'_>) {
    let store = ground.open();
    // The first owner of a shard that nobody wrote yet is accepted.
    assert_eq!(commit(&*store, owned(1, 5)), Ok(()));
    assert_eq!(commit(&*store, owned(1, 5)), Ok(()));
    assert_eq!(commit(&*store, owned(1, 4)), Err(CommitError::Fenced));
    assert_eq!(commit(&*store, owned(2, 4)), Ok(()));
    assert_eq!(commit(&*store, owned(1, 6)), Ok(()));
    assert_eq!(commit(&*store, owned(1, 5)), Err(CommitError::Fenced));
    assert_eq!(commit(&*store, batch(vec![])), Ok(()));

    let first = wait(store.take_over()).expect("an epoch");
    assert!(first > 6);
    let second = wait(store.take_over()).expect("an epoch");
    assert!(second > first);
    drop(store);

    let store = ground.open();
    assert_eq!(commit(&*store, owned(3, first)), Err(CommitError::Fenced));
    assert_eq!(
        wait(store.customer(acme())).map(|kept| kept.is_some()),
        Ok(true)
    );
    assert_eq!(commit(&*store, owned(3, second)), Ok(()));
    assert_eq!(commit(&*store, owned(1, 6)), Err(CommitError::Fenced));
    let third = wait(store.take_over()).expect("an epoch");
    assert_eq!(commit(&*store, owned(3, second)), Err(CommitError::Fenced));
    assert_eq!(commit(&*store, owned(3, third)), Ok(()));
}

pub(super) fn earlier_epoch_of_deliveries_is_fenced(ground: &TestBed<'_>) {
    let owned = |partition, epoch| Batch {
        owner: Owner::Deliveries {
            partition: Partition(partition),
            epoch,
        },
        ..owned(0, 0)
    };
    let store = ground.open();
    assert_eq!(commit(&*store, owned(1, 5)), Ok(()));
    assert_eq!(commit(&*store, owned(1, 4)), Err(CommitError::Fenced));
    assert_eq!(commit(&*store, owned(2, 4)), Ok(()));
    // Whoever takes the store over takes no deliveries.
    assert!(wait(store.take_over()).is_ok());
    drop(store);

    let store = ground.open();
    assert_eq!(commit(&*store, owned(1, 4)), Err(CommitError::Fenced));
    assert_eq!(commit(&*store, owned(1, 5)), Ok(()));
    assert_eq!(commit(&*store, owned(2, 6)), Ok(()));
    assert_eq!(commit(&*store, owned(2, 5)), Err(CommitError::Fenced));
}

pub(super) fn first_server_key_stays(ground: &TestBed<'_>) {
    let store = ground.open();
    let key = |byte: u8| Sealed::from_bytes([byte; 80].into());
    assert_eq!(wait(store.server_key(key(1))), Ok(key(1)));
    assert_eq!(wait(store.server_key(key(2))), Ok(key(1)));
    drop(store);
    assert_eq!(wait(ground.open().server_key(key(3))), Ok(key(1)));
}

fn owned(shard: u16, epoch: u64) -> Batch {
    let owner = Owner::Shard {
        shard: Shard(shard),
        epoch,
    };
    Batch {
        owner,
        ..batch(vec![Change::PutCustomer(customer("acme"))])
    }
}
