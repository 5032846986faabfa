//! Does a value of any size stay in the log that is fsynced?
//!
//! sled writes what is too large for its log to files of their own, which nobody fsyncs.

#![allow(clippy::unwrap_used)]

use std::fs;

use engine::action::{Action, Outcome, Status};
use store::conformance::given::{acme, action, created, device, moved, saved};
use store::conformance::wait;
use store::{Options, SledStore, Store};

const ANSWER_BYTES: usize = 100 * 1_024;

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
