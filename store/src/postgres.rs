//! What makes decisions durable on a PostgreSQL server: rows of typed columns behind one committer.
//!
//! ```text
//!  commit(batch) -> plan: rows and checks made on the caller's thread
//!        -> bounded queue -> committer task: check and write a group as one transaction
//!                         -> every receipt of the group
//!  a question    -> a connection of a pool -> answer
//! ```
//!
//! The connections live on a runtime of the store's own, so its futures work on any runtime and on
//! none. A query sees only what is durable. Decision 0127 has the reasons of the layout.

mod fault;
mod open;
mod readers;
mod reads;
mod sql_types;

pub use self::open::{PostgresOpenError, PostgresOptions};

use std::sync::Arc;

use engine::change::Batch;
use engine::delivery::backlog::Sequence;
use engine::sealed::Sealed;
use tokio::runtime::{Builder, Runtime};

use self::open::{Server, migrate};
use self::readers::Readers;
use crate::commit_state::CommitState;
use crate::{Commit, Maintenance, Pressure, ReadAnswer, Receipt, Retention, SweepReport};

/// The threads of the connections: they move bytes, the work is the server's.
const THREADS: usize = 2;

/// The store on a PostgreSQL server.
pub struct PostgresStore {
    readers: Readers,
    state: Arc<CommitState>,
    runtime: Option<Runtime>,
}

impl PostgresStore {
    /// Opens the store, and brings its schema up to date.
    pub fn open(options: PostgresOptions) -> Result<Self, PostgresOpenError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("store-postgres")
            .enable_all()
            .build()
            .map_err(PostgresOpenError::Threads)?;
        let server = Server::of(&options)?;
        let readers = Readers {
            runtime: runtime.handle().clone(),
            single: server.pool(options.readers),
            lists: server.pool(options.readers),
        };
        let state = Arc::new(CommitState::new(options.queue_max, options.now));
        let opening = open(readers.clone(), Arc::clone(&state));
        // Whoever opens the store may be on a runtime, which cannot wait for another one.
        let (reply, opened) = std::sync::mpsc::channel();
        runtime.spawn(async move { reply.send(opening.await) });
        opened.recv().expect("the runtime answers")?;
        Ok(Self {
            readers,
            state,
            runtime: Some(runtime),
        })
    }
}

async fn open(readers: Readers, state: Arc<CommitState>) -> Result<(), PostgresOpenError> {
    migrate(&readers.single).await?;
    let unreadable = |why: tokio_postgres::Error| PostgresOpenError::Unreadable(why.to_string());
    let connection = readers.single.get().await.map_err(open::no_connection)?;
    let newest = connection.query_one("SELECT newest FROM event_sequence", &[]);
    let newest: i64 = newest.await.map_err(unreadable)?.get(0);
    state.reach(Sequence(newest.cast_unsigned()));
    Ok(())
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped on another runtime, which must not wait.
            runtime.shutdown_background();
        }
    }
}

impl Commit for PostgresStore {
    fn commit(&self, _batch: Batch) -> Receipt {
        unimplemented!()
    }

    fn pressure(&self) -> Pressure {
        self.state.pressure()
    }
}

impl Maintenance for PostgresStore {
    fn take_over(&self) -> ReadAnswer<u64> {
        unimplemented!()
    }

    fn server_key(&self, _new: Sealed) -> ReadAnswer<Sealed> {
        unimplemented!()
    }

    fn sweep(&self, _retention: Retention, _max: u32) -> ReadAnswer<SweepReport> {
        unimplemented!()
    }
}
