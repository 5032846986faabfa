//! How are many statements sent without waiting for each?

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::cell::Parameter;
use super::fault::PostgresFault;

/// Statements that are sent one after the other, before the first one is answered.
#[derive(Default)]
pub(super) struct Pipeline<'a> {
    statements: Vec<(String, Vec<Parameter<'a>>)>,
}

impl<'a> Pipeline<'a> {
    /// Adds a statement.
    pub(super) fn add(&mut self, sql: impl Into<String>, parameters: Vec<Parameter<'a>>) {
        self.statements.push((sql.into(), parameters));
    }

    /// Adds the statements of another one.
    pub(super) fn append(&mut self, mut other: Self) {
        self.statements.append(&mut other.statements);
    }

    /// How many statements there are.
    pub(super) fn len(&self) -> usize {
        self.statements.len()
    }

    /// Sends the statements; returns the rows of each, or the first refusal. A statement that the
    /// connection has not seen yet is prepared first.
    pub(super) async fn run(self, client: &ClientWrapper) -> Result<Vec<Vec<Row>>, PostgresFault> {
        let mut prepared = Vec::with_capacity(self.statements.len());
        for (sql, _) in &self.statements {
            prepared.push(client.prepare_cached(sql).await?);
        }
        let lists: Vec<Vec<&(dyn ToSql + Sync)>> = self
            .statements
            .iter()
            .map(|(_, parameters)| {
                let parameters = parameters.iter();
                parameters.map(|it| &**it as &(dyn ToSql + Sync)).collect()
            })
            .collect();
        let sent = prepared.iter().zip(&lists);
        let sent = sent.map(|(statement, parameters)| client.query(statement, parameters));
        let answers = all(sent.map(|answer| Box::pin(answer) as Pin<Box<_>>).collect()).await;
        Ok(answers.into_iter().collect::<Result<_, _>>()?)
    }
}

/// Waits for all futures. They begin in their order.
async fn all<F: Future>(mut futures: Vec<Pin<Box<F>>>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        match outputs.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
