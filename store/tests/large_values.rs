//! Does a value of any size stay in the log that is fsynced?
//!
//! sled writes what is too large for its log to files of their own, which nobody fsyncs.

#![allow(clippy::unwrap_used)]

use std::fs;

use engine::action::{Action, Outcome, Status};
use engine::change::Change;
use store::conformance::given::{acme, action, batch, created, definition, device, moved, saved};
use store::conformance::wait;
use store::{Options, SledStore, Store};

const ANSWER_BYTES: usize = 100 * 1_024;
const DEFINITION_BYTES: usize = 256 * 1_024;

#[test]
fn answers_of_100_kib_leave_the_blobs_folder_empty() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let meter = device(&acme(), 1);
    let answered: Vec<Action> = (0..40)
        .map(|chance| answered(&action(&meter, 1, chance)))
        .collect();
    for done in &answered {
        let request = moved(done, Status::Scheduled);
        assert_eq!(wait(store.commit(created(&request))), Ok(()));
        assert_eq!(wait(store.commit(saved(Some(&request), done))), Ok(()));
    }
    assert_eq!(
        fs::read_dir(home.path().join("rows/blobs"))
            .unwrap()
            .count(),
        0
    );
    drop(store);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    for done in answered {
        assert_eq!(wait(store.action(done.id)), Ok(Some(done)));
    }
    assert_eq!(
        fs::read_dir(home.path().join("rows/blobs"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn definitions_of_256_kib_leave_the_blobs_folder_empty() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let large = |object| definition(&acme(), object, "1.0", DEFINITION_BYTES);
    for object in 0..20 {
        let put = Change::PutDefinition(Box::new(large(object)));
        assert_eq!(wait(store.commit(batch(vec![put]))), Ok(()));
    }
    let blobs = || fs::read_dir(home.path().join("rows/blobs")).unwrap();
    assert_eq!(blobs().count(), 0);
    drop(store);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    for object in 0..20 {
        let definition = large(object);
        let kept = wait(store.definition(definition.id.clone()));
        assert_eq!(kept, Ok(Some(definition)));
    }
    assert_eq!(blobs().count(), 0);
}

fn answered(request: &Action) -> Action {
    let payload = request.id.to_string().repeat(ANSWER_BYTES / 36);
    let outcome = Outcome {
        payload: Some(payload.into()),
        ..Outcome::default()
    };
    Action {
        outcome: Some(outcome),
        ..moved(request, Status::Succeeded)
    }
}
