//! Is everything there after a store was moved to PostgreSQL, and back? Both ends are compared by
//! the server itself, row by row.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use engine::change::Change;
use store::conformance::samples::{acme, action, batch, created, customer, device, event, known};
use store::conformance::{run_all, wait};
use store::{
    Commit, CommitError, Maintenance, MigrationError, MigrationProgress, MigrationReport,
    OfflineStore, OpenError, Options, PostgresOpenError, PostgresOptions, PostgresStore,
    PostgresUrl, SledStore, migrate_to_embedded, migrate_to_postgres,
};

use crate::postgres::PostgresServer;
use crate::{DATABASE, no_trust};

/// Every so many laws have their stores moved to a server: each takes two new schemas. The rows of
/// all of them are moved without a server by a test of the library.
const LAWS_STEP: usize = 4;

type Outcome = Result<MigrationReport, MigrationError>;

/// The events of each device of a store that is moved in parts.
const EVENTS: u64 = 400;

#[test]
fn stores_of_the_embedded_engine_are_the_same_there_and_back() {
    let server = PostgresServer::start_without_fsync();
    let home = tempfile::tempdir().unwrap();
    run_all(home.path(), &|path| {
        Box::new(SledStore::open(Options::at(path)).unwrap())
    });
    let mut compared = 0;
    for law in laws(home.path()) {
        let name = name_of(&law);
        let [there, again] = [format!("{name}_there"), format!("{name}_again")];
        let moved = to_postgres(&server, &law, &there);
        let back = law.join("back");
        let Some(came_back) = to_embedded(&server, &there, &back) else {
            assert!(
                !OfflineStore::open(&law)
                    .unwrap()
                    .check()
                    .findings
                    .is_empty()
            );
            continue;
        };
        assert_eq!(came_back.tables, moved.tables, "{name}");
        let moved_again = to_postgres(&server, &back, &again);
        assert_eq!(moved_again.tables, moved.tables, "{name}");
        same(&server, &there, &again);
        compared += 1;
    }
    assert!(compared > 10, "{compared} stores are whole");
}

#[test]
fn a_migration_that_is_interrupted_after_any_page_is_continued() {
    let server = PostgresServer::start_without_fsync();
    let home = tempfile::tempdir().unwrap();
    let from = filled(home.path());
    let whole = to_postgres(&server, &from, "whole");
    create(&server, "parts");
    let (mut runs, mut moved) = (0, None);
    while moved.is_none() {
        assert!(is_refused_on_postgres(&server, "parts") || runs == 0);
        moved = interrupted(|told| migrate_to_postgres(&from, &at(&server, "parts"), told));
        runs += 1;
    }
    assert!(runs > 5, "it was interrupted");
    assert_eq!(moved.unwrap().tables, whole.tables);
    same(&server, "whole", "parts");

    let back = home.path().join("back");
    let (mut runs, mut moved) = (0, None);
    while moved.is_none() {
        if runs > 0 {
            let refused = SledStore::open(Options::at(&back)).err().unwrap();
            assert!(matches!(refused, OpenError::Unfinished { .. }), "{refused}");
            let refused = OfflineStore::open(&back).err().unwrap();
            assert!(matches!(refused, OpenError::Unfinished { .. }), "{refused}");
        }
        moved = interrupted(|told| migrate_to_embedded(&at(&server, "parts"), &back, told));
        runs += 1;
    }
    assert!(runs > 5, "it was interrupted");
    assert_eq!(moved.unwrap().tables, whole.tables);
    assert!(
        OfflineStore::open(&back)
            .unwrap()
            .check()
            .findings
            .is_empty()
    );
}

#[test]
fn a_source_that_is_used_or_was_changed_is_refused_and_so_is_a_target_with_a_store() {
    let server = PostgresServer::start_without_fsync();
    let home = tempfile::tempdir().unwrap();
    let from = filled(home.path());
    let used = SledStore::open(Options::at(&from)).unwrap();
    let refused = migrate(&server, &from, "target").unwrap_err();
    assert!(
        matches!(refused, MigrationError::Embedded(OpenError::Held { .. })),
        "{refused}"
    );
    drop(used);
    // A page of it was moved when the source was used again.
    create(&server, "target");
    let part = interrupted(|told| migrate_to_postgres(&from, &at(&server, "target"), told));
    assert!(part.is_none());
    let store = SledStore::open(Options::at(&from)).unwrap();
    let put = known(&device(&acme(), 99));
    assert_eq!(wait(store.commit(put)), Ok(()));
    drop(store);
    let refused = migrate(&server, &from, "target").unwrap_err();
    assert!(matches!(refused, MigrationError::OtherSource), "{refused}");

    to_postgres(&server, &from, "moved");
    let refused = migrate(&server, &from, "moved").unwrap_err();
    assert!(matches!(refused, MigrationError::NotEmpty(_)), "{refused}");
    let refused = migrate_to_embedded(&at(&server, "moved"), &from, &mut |_| {}).unwrap_err();
    assert!(matches!(refused, MigrationError::NotEmpty(_)), "{refused}");
    create(&server, "empty");
    let back = home.path().join("back");
    let refused = migrate_to_embedded(&at(&server, "empty"), &back, &mut |_| {}).unwrap_err();
    assert!(matches!(refused, MigrationError::NoSource), "{refused}");

    // A service that runs on writes nothing, and what is written by one that begins is noticed.
    let service = PostgresStore::open(at(&server, "moved")).unwrap();
    wait(service.take_over()).unwrap();
    let mut is_changed = false;
    let changed = migrate_to_embedded(&at(&server, "moved"), &back, &mut |progress| {
        if !is_changed && matches!(progress, MigrationProgress::Moved(..)) {
            let put = || batch(vec![Change::PutCustomer(customer("umbrella"))]);
            assert_eq!(wait(service.commit(put())), Err(CommitError::Fenced));
            let next = PostgresStore::open(at(&server, "moved")).unwrap();
            wait(next.take_over()).unwrap();
            assert_eq!(wait(next.commit(put())), Ok(()));
            is_changed = true;
        }
    });
    let changed = changed.unwrap_err();
    let noticed = matches!(
        changed,
        MigrationError::SourceChanged | MigrationError::Different(_)
    );
    assert!(noticed, "{changed}");
    let refused = migrate_to_embedded(&at(&server, "moved"), &back, &mut |_| {}).unwrap_err();
    assert!(matches!(refused, MigrationError::OtherSource), "{refused}");
}

/// Moves the stores that the laws left in schemas of their names there and back, and compares.
pub(crate) fn there_and_back(server: &PostgresServer, home: &Path) {
    let mut compared = 0;
    for law in laws(home) {
        let name = name_of(&law);
        let back = law.join("store");
        let Some(left) = to_embedded(server, &name, &back) else {
            continue;
        };
        let again = format!("{name}_again");
        let moved = to_postgres(server, &back, &again);
        assert_eq!(moved.tables, left.tables, "{name}");
        same(server, &name, &again);
        compared += 1;
    }
    assert!(compared > 10, "{compared} stores are whole");
}

/// Ends a run with a panic after its first page; returns nothing then.
fn interrupted(
    migrate: impl FnOnce(&mut dyn FnMut(MigrationProgress)) -> Outcome,
) -> Option<MigrationReport> {
    let run = catch_unwind(AssertUnwindSafe(|| {
        migrate(&mut |progress| {
            if matches!(progress, MigrationProgress::Moved(..)) {
                resume_unwind(Box::new("interrupted"));
            }
        })
    }));
    run.ok().map(|moved| moved.unwrap())
}

/// A store with several kinds of records, and with more events than a page has.
fn filled(home: &Path) -> PathBuf {
    let from = home.join("from");
    let store = SledStore::open(Options::at(&from)).unwrap();
    let put = batch(vec![Change::PutCustomer(customer("acme"))]);
    assert_eq!(wait(store.commit(put)), Ok(()));
    for number in 0..20 {
        let meter = device(&acme(), number);
        let reported = (0..EVENTS).map(|place| event(&meter, 3, EVENTS * number + place));
        let reported = reported.map(|it| Change::AppendEvent(Box::new(it)));
        let reported = batch(reported.collect());
        for batch in [known(&meter), created(&action(&meter, 3, number)), reported] {
            assert_eq!(wait(store.commit(batch)), Ok(()));
        }
    }
    from
}

fn laws(home: &Path) -> Vec<PathBuf> {
    let mut laws: Vec<_> = fs::read_dir(home)
        .unwrap()
        .map(|law| law.unwrap().path())
        .collect();
    laws.sort();
    laws.into_iter().step_by(LAWS_STEP).collect()
}

fn name_of(law: &Path) -> String {
    let name = law.file_name().unwrap().to_str().unwrap();
    name.replace('-', "_")
}

fn create(server: &PostgresServer, schema: &str) {
    server.run(DATABASE, &format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
}

fn at(server: &PostgresServer, schema: &str) -> PostgresOptions {
    let url = server.url(DATABASE) + "?options=-csearch_path%3D" + schema;
    PostgresOptions::at(PostgresUrl::parse(&url).unwrap(), no_trust())
}

fn migrate(
    server: &PostgresServer,
    from: &Path,
    schema: &str,
) -> Result<MigrationReport, MigrationError> {
    create(server, schema);
    migrate_to_postgres(from, &at(server, schema), &mut |_| {})
}

fn to_postgres(server: &PostgresServer, from: &Path, schema: &str) -> MigrationReport {
    migrate(server, from, schema).unwrap()
}

/// Nothing if the store is not whole: some laws store things without what they belong to.
fn to_embedded(server: &PostgresServer, schema: &str, to: &Path) -> Option<MigrationReport> {
    match migrate_to_embedded(&at(server, schema), to, &mut |_| {}) {
        Err(MigrationError::Broken(_)) => None,
        moved => Some(moved.unwrap_or_else(|why| panic!("{schema}: {why}"))),
    }
}

fn is_refused_on_postgres(server: &PostgresServer, schema: &str) -> bool {
    let refused = PostgresStore::open(at(server, schema)).err();
    matches!(refused, Some(PostgresOpenError::Unfinished))
}

/// Every table of two schemas has the same rows. Notes that nothing is removed are no rows. Counts
/// are sums over their slots, and those of the other schema are of its rows: some laws store things
/// without counting them.
fn same(server: &PostgresServer, one: &str, other: &str) {
    let tables = format!(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = '{one}' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    );
    let tables: BTreeSet<String> = server
        .run(DATABASE, &tables)
        .lines()
        .map(str::to_owned)
        .collect();
    assert!(tables.contains("device_tag") && tables.contains("event"));
    let differing = tables.iter().filter_map(|table| {
        let rows = match table.as_str() {
            "committer" | "partition_lease" | "node" | "schema_history" | "shard_lease" => {
                return None;
            }
            "device_count" | "action_count" | "campaign_device_count" => return None,
            "removed_customer" => {
                "SELECT * FROM {} WHERE last_event > 0 \
                 OR last_entry <> '00000000-0000-0000-0000-000000000000'"
            }
            "store_state" => "SELECT server_key FROM {}",
            _ => "SELECT * FROM {}",
        };
        let of = |schema: &str| rows.replace("{}", &format!("{schema}.{table}"));
        Some(unequal(table, &of(one), &of(other)))
    });
    let counts = [
        ("device", "customer"),
        ("action", "customer, protocol, status"),
    ];
    let counts = counts.map(|(table, by)| {
        let counted = format!("SELECT {by}, count(*) FROM {other}.{table} GROUP BY {by}");
        let stored = format!("SELECT {by}, sum(count) FROM {other}.{table}_count GROUP BY {by}");
        unequal(&format!("{table}_count"), &counted, &stored)
    });
    let differing: Vec<_> = differing.chain(counts).collect();
    let differing = server.run(DATABASE, &differing.join(" UNION ALL "));
    assert_eq!(differing, "", "{one} and {other}");
}

/// Names a table if two queries have other rows.
fn unequal(table: &str, one: &str, other: &str) -> String {
    format!(
        "SELECT '{table}' WHERE EXISTS ({one} EXCEPT ALL {other}) \
         OR EXISTS ({other} EXCEPT ALL {one})"
    )
}
