//! Which events wait for a destination, and how far has it come?

use std::sync::Arc;

use engine::delivery::backlog::{Backlog, DeadLetter, DestinationProgress, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, Partition};
use tokio_postgres::Row;

use super::events::{events, number_of, queued_in};
use super::{record, settings, shown};
use crate::postgres::PostgresStore;
use crate::postgres::fault::PostgresFault;
use crate::postgres::readers::Reader;
use crate::postgres::sql_types::SqlId;
use crate::record::Unreadable;
use crate::record::outbox::{read_dead, read_retry};
use crate::{DeliveryReads, EventNews, PartitionNotifier, ReadAnswer};

impl DeliveryReads for PostgresStore {
    fn destination(&self, id: DestinationId) -> ReadAnswer<Option<Destination>> {
        self.readers
            .ask(move |reader| async move { settings::destination(&reader, id).await })
    }

    fn progress_of(&self, destination: DestinationId) -> ReadAnswer<DestinationProgress> {
        self.readers
            .ask(move |reader| async move { progress_of(&reader, destination).await })
    }

    fn partitions_waiting(&self, destination: DestinationId) -> ReadAnswer<Vec<Partition>> {
        self.readers
            .ask(move |reader| async move { partitions_waiting(&reader, destination).await })
    }

    fn waiting(
        &self,
        customer: CustomerId,
        partition: Partition,
        after: Sequence,
        max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>> {
        self.readers.ask(move |reader| async move {
            waiting(&reader, &customer, partition, after, max).await
        })
    }

    fn backlog(&self, destination: DestinationId) -> ReadAnswer<Backlog> {
        self.readers
            .list(move |reader| async move { backlog(&reader, destination).await })
    }

    fn dead_letters(
        &self,
        destination: DestinationId,
        after: Option<Sequence>,
        max: u32,
    ) -> ReadAnswer<Vec<DeadLetter>> {
        self.readers
            .list(move |reader| async move { dead_letters(&reader, destination, after, max).await })
    }

    fn events(&self, customer: CustomerId, queued: Vec<QueuedEvent>) -> ReadAnswer<Vec<Event>> {
        self.readers
            .ask(move |reader| async move { events(&reader, &customer, &queued).await })
    }

    fn streamed_rows(
        &self,
        customer: CustomerId,
        partition: Partition,
        after: Sequence,
        max: u32,
    ) -> ReadAnswer<Vec<QueuedEvent>> {
        self.readers.list(move |reader| async move {
            waiting(&reader, &customer, partition, after, max).await
        })
    }

    fn streamed_events(
        &self,
        customer: CustomerId,
        queued: Vec<QueuedEvent>,
    ) -> ReadAnswer<Vec<Event>> {
        self.readers
            .list(move |reader| async move { events(&reader, &customer, &queued).await })
    }

    fn newest_durable(&self) -> ReadAnswer<Sequence> {
        self.readers.ask(|reader| async move {
            // Other nodes store events, too.
            let row = reader.row("SELECT newest FROM event_sequence", &[]).await?;
            let newest: i64 = row.map_or(0, |row| row.get(0));
            Ok(Sequence(newest.cast_unsigned()))
        })
    }

    fn subscribe(&self, customer: CustomerId) -> Arc<PartitionNotifier> {
        self.state.notifiers.subscribe(customer)
    }

    fn subscribe_to_all(&self) -> Arc<EventNews> {
        self.state.notifiers.subscribe_to_all()
    }

    fn note_stored_elsewhere(&self, events: Option<Vec<(CustomerId, Partition)>>) {
        self.state.notifiers.notify_of_others(events);
    }
}

/// The progress of a destination: its cursor in each partition, and its pending retries. Only its
/// forwarder changes them.
async fn progress_of(
    reader: &Reader,
    id: DestinationId,
) -> Result<DestinationProgress, PostgresFault> {
    const SINCE: &str = "SELECT since FROM destination WHERE id = $1";
    const CURSORS: &str = "SELECT partition, sequence FROM destination_cursor \
        WHERE destination = $1 ORDER BY partition";
    const RETRIES: &str =
        "SELECT sequence, record FROM pending_retry WHERE destination = $1 ORDER BY sequence";
    let id = SqlId(*id.as_bytes());
    let Some(row) = reader.row(SINCE, &[&id]).await? else {
        return Ok(DestinationProgress::default());
    };
    let reached = reader.rows(CURSORS, &[&id]).await?;
    let reached = reached
        .iter()
        .map(|row| Ok((partition_in(row)?, sequence_in(row, 1)?)));
    let retrying = reader.rows(RETRIES, &[&id]).await?;
    let retrying = retrying.iter().map(|row| {
        let sequence = sequence_in(row, 0)?;
        record(row, 1, |value| read_retry(sequence, value))
    });
    Ok(DestinationProgress {
        since: sequence_in(&row, 0)?,
        reached: reached.collect::<Result<_, PostgresFault>>()?,
        retrying: retrying.collect::<Result<_, PostgresFault>>()?,
    })
}

/// The partitions in which events wait for a destination.
async fn partitions_waiting(
    reader: &Reader,
    id: DestinationId,
) -> Result<Vec<Partition>, PostgresFault> {
    const SQL: &str = "SELECT every.partition \
        FROM (SELECT customer, since FROM destination WHERE id = $1) AS destination \
        CROSS JOIN unnest($2::smallint[]) AS every (partition) \
        LEFT JOIN destination_cursor AS reached \
            ON reached.destination = $1 AND reached.partition = every.partition \
        WHERE (SELECT true FROM event \
            WHERE event.customer = destination.customer AND event.partition = every.partition \
            AND event.sequence > coalesce(reached.sequence, since) LIMIT 1) \
        ORDER BY every.partition";
    let id = SqlId(*id.as_bytes());
    let rows = reader.rows(SQL, &[&id, &every_partition()]).await?;
    rows.iter().map(partition_in).collect()
}

/// The events of a partition after a number. A process learns of those that become visible later,
/// because they have greater numbers.
async fn waiting(
    reader: &Reader,
    customer: &CustomerId,
    partition: Partition,
    after: Sequence,
    max: u32,
) -> Result<Vec<QueuedEvent>, PostgresFault> {
    const SQL: &str = "SELECT sequence, device, id, event_type, lifecycle FROM event \
        WHERE customer = $1 AND partition = $2 AND sequence > $3 ORDER BY sequence LIMIT $4";
    let (partition, after) = (i16::from(partition.0), number_of(after));
    let rows = reader
        .rows(
            SQL,
            &[&customer.as_str(), &partition, &after, &i64::from(max)],
        )
        .await?;
    shown(&rows, queued_in)
}

/// How many events wait for a destination, and how many dead letters it has: of one instant.
async fn backlog(reader: &Reader, id: DestinationId) -> Result<Backlog, PostgresFault> {
    const SQL: &str = "WITH cursors AS MATERIALIZED (SELECT customer, every.partition, \
            coalesce(reached.sequence, since) AS sequence \
            FROM (SELECT customer, since FROM destination WHERE id = $1) AS destination \
            CROSS JOIN unnest($2::smallint[]) AS every (partition) \
            LEFT JOIN destination_cursor AS reached \
                ON reached.destination = $1 AND reached.partition = every.partition) \
        SELECT sum((SELECT count(*) FROM event \
                WHERE event.customer = cursors.customer \
                AND event.partition = cursors.partition \
                AND event.sequence > cursors.sequence))::bigint, \
            array_agg(cursors.sequence ORDER BY partition), \
            (SELECT count(*) FROM dead_letter WHERE destination = $1), \
            (SELECT array_agg(sequence ORDER BY sequence) FROM pending_retry \
                WHERE destination = $1), \
            (SELECT array_agg(record ORDER BY sequence) FROM pending_retry \
                WHERE destination = $1) \
        FROM cursors HAVING count(*) > 0";
    let id = SqlId(*id.as_bytes());
    let Some(row) = reader.row(SQL, &[&id, &every_partition()]).await? else {
        return Ok(Backlog::default());
    };
    let (waiting, cursors, dead): (i64, Vec<i64>, i64) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let retries: Option<Vec<i64>> = row.try_get(3)?;
    let records: Option<Vec<&[u8]>> = row.try_get(4)?;
    let retries = retries.unwrap_or_default().into_iter();
    let mut waiting = waiting.cast_unsigned();
    for (sequence, record) in retries.zip(records.unwrap_or_default()) {
        let retry = read_retry(Sequence(sequence.cast_unsigned()), record)?;
        let cursor = cursors.get(usize::from(retry.queued.partition().0));
        // Behind the cursor it is counted among the events.
        waiting += u64::from(cursor.is_some_and(|cursor| sequence <= *cursor));
    }
    Ok(Backlog {
        waiting,
        dead: dead.cast_unsigned(),
    })
}

/// The dead letters of a destination after a sequence number; none of a removed one.
async fn dead_letters(
    reader: &Reader,
    id: DestinationId,
    after: Option<Sequence>,
    max: u32,
) -> Result<Vec<DeadLetter>, PostgresFault> {
    const SQL: &str = "SELECT sequence, record FROM dead_letter \
        WHERE destination = $1 AND sequence > $2 \
        AND EXISTS (SELECT FROM destination WHERE id = $1) ORDER BY sequence LIMIT $3";
    let (id, after) = (SqlId(*id.as_bytes()), after.map_or(-1, number_of));
    let rows = reader.rows(SQL, &[&id, &after, &i64::from(max)]).await?;
    shown(&rows, |row| {
        let sequence = sequence_in(row, 0)?;
        record(row, 1, |value| read_dead(sequence, value))
    })
}

fn every_partition() -> Vec<i16> {
    Partition::all().map(|it| i16::from(it.0)).collect()
}

fn partition_in(row: &Row) -> Result<Partition, PostgresFault> {
    let partition: i16 = row.try_get(0)?;
    let partition = u8::try_from(partition).map_err(|_| Unreadable::Damaged("a partition"))?;
    Ok(Partition(partition))
}

fn sequence_in(row: &Row, column: usize) -> Result<Sequence, PostgresFault> {
    let sequence: i64 = row.try_get(column)?;
    Ok(Sequence(sequence.cast_unsigned()))
}
