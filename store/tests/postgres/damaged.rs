//! What is read when a row is damaged? The others of a list; what a decision depends on is refused.

use engine::change::{Batch, Change};
use engine::ids::DeviceKey;
use engine::query::devices::{DeviceFilter, DevicePageRequest};
use engine::query::{ActionFilter, HistoryFilter, PageRequest};
use store::conformance::samples::{acme, action, created, device, event, known};
use store::conformance::wait;
use store::{Commit, DeliveryReads, DeviceReads, DirectoryReads, Unavailable};

use crate::postgres::PostgresServer;
use crate::{DATABASE, open};

const EVERY: PageRequest = PageRequest {
    number: 1,
    size: 100,
};

#[test]
fn a_damaged_row_does_not_hide_the_others() {
    let server = PostgresServer::start_without_fsync();
    let store = open(&server, "damaged");
    let [lost, left] = [1, 2].map(|number| device(&acme(), number));
    for meter in [&lost, &left] {
        let events = [1, 2].map(|second| Change::AppendEvent(Box::new(event(meter, second, 1))));
        let reported = Batch {
            changes: events.into(),
            ..Batch::default()
        };
        for batch in [known(meter), created(&action(meter, 3, 1)), reported] {
            assert_eq!(wait(store.commit(batch)), Ok(()));
        }
    }
    for table in ["device", "action", "event"] {
        let device = match table {
            "device" => "key",
            _ => "device",
        };
        let damage = format!(
            "UPDATE damaged.{table} SET record = '\\x00' WHERE {device} = '{}'",
            lost.key()
        );
        server.run(DATABASE, &damage);
    }

    let all = DeviceFilter::all_of(acme());
    let devices = wait(store.devices_of(all, DevicePageRequest::of(EVERY)));
    let devices = devices.unwrap().unwrap().items.into_iter();
    assert_eq!(
        devices.map(|it| it.profile).collect::<Vec<_>>(),
        std::slice::from_ref(&left)
    );
    assert_eq!(wait(store.profile(lost.key())), Err(Unavailable));
    let actions = wait(store.actions(ActionFilter::all_of(acme()), EVERY)).unwrap();
    let actions = actions.items.into_iter().map(|it| it.action);
    assert_eq!(actions.collect::<Vec<_>>(), [action(&left, 3, 1)]);

    let every = DeviceKey::from_bytes([0; 16])..=DeviceKey::from_bytes([0xff; 16]);
    let page = wait(store.restored_page(every, 10)).unwrap();
    let restored = page.devices.into_iter().map(|(device, _)| device);
    assert_eq!(restored.collect::<Vec<_>>(), [left.key()]);
    assert_eq!(wait(store.restored(lost.key())), Err(Unavailable));

    let history = |of: &engine::profile::Profile| {
        let filter = HistoryFilter::all_of(acme(), of.key());
        wait(store.events_of(filter, 10)).unwrap().events.len()
    };
    assert_eq!((history(&lost), history(&left)), (0, 2));
    let queued = |of: &engine::profile::Profile| {
        let waiting = store.waiting(acme(), of.key().partition(), Default::default(), 10);
        wait(waiting).unwrap()
    };
    let both = [queued(&lost), queued(&left)].concat();
    let events = wait(store.events(acme(), both)).unwrap();
    assert!(events.iter().all(|it| it.device == left.key()));
    assert!(!events.is_empty());
}
