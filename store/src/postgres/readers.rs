//! On which connections are queries answered? On those of two pools, so that a long list never
//! delays what a device waits for.
//!
//! What a query sees is durable: the server shows a transaction to others once its commit has
//! reached the disk, and the standby that it waits for.

use std::future::Future;

use deadpool_postgres::{Object, Pool};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::PostgresFault;
use crate::{ReadAnswer, Unavailable};

/// The pools, and the runtime on which their connections live.
#[derive(Clone)]
pub(super) struct ReaderPools {
    /// The runtime.
    pub(super) runtime: Handle,
    /// For single things, and for deliveries.
    pub(super) single: Pool,
    /// For lists of any length, streams, and what a start restores.
    pub(super) lists: Pool,
}

/// A connection that answers a query.
pub(super) struct Reader(Object);

impl ReaderPools {
    /// Asks for a single thing, or a short list.
    pub(super) fn ask<T, F>(
        &self,
        query: impl FnOnce(Reader) -> F + Send + 'static,
    ) -> ReadAnswer<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, PostgresFault>> + Send + 'static,
    {
        self.answer(self.single.clone(), query)
    }

    /// Asks for what may take long.
    pub(super) fn list<T, F>(
        &self,
        query: impl FnOnce(Reader) -> F + Send + 'static,
    ) -> ReadAnswer<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, PostgresFault>> + Send + 'static,
    {
        self.answer(self.lists.clone(), query)
    }

    /// The answer comes over a channel: whoever waits for it may be on another runtime or on none.
    fn answer<T, F>(
        &self,
        pool: Pool,
        query: impl FnOnce(Reader) -> F + Send + 'static,
    ) -> ReadAnswer<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, PostgresFault>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.runtime.spawn(async move {
            let answered = match pool.get().await {
                Ok(connection) => query(Reader(connection)).await,
                Err(fault) => Err(PostgresFault::from(fault)),
            };
            let answered = answered.map_err(|fault| {
                tracing::error!(%fault, "a query cannot be answered");
                Unavailable
            });
            // Whoever asked may have gone.
            let _ = reply.send(answered);
        });
        Box::pin(async move { answer.await.unwrap_or(Err(Unavailable)) })
    }
}

impl Reader {
    /// The rows that a query finds. It is prepared once on each connection.
    pub(super) async fn rows(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, PostgresFault> {
        let statement = self.0.prepare_cached(sql).await?;
        Ok(self.0.query(&statement, parameters).await?)
    }

    /// The row that a query finds, if there is one.
    pub(super) async fn row(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, PostgresFault> {
        let statement = self.0.prepare_cached(sql).await?;
        Ok(self.0.query_opt(&statement, parameters).await?)
    }
}
