//! What does a sweep remove, and how much of it at once?
//!
//! Every kind of thing has its share of the bound first, so that none waits for another; the rest
//! is shared by those that have more. A partition of which every row is too old is dropped first;
//! its rows are not counted.

use deadpool_postgres::ClientWrapper;
use engine::ids::SmsId;
use engine::moment::Timestamp;
use tokio_postgres::types::ToSql;

use super::fault::PostgresFault;
use super::fence::begin_unless_superseded;
use super::partitions::{Daily, Partitions};
use super::sql_types::{SqlId, SqlTime};
use crate::{Retention, SWEPT_MS, SweepReport};

/// The things that one sweep removes at most, however much is requested: commits wait meanwhile.
const THINGS_MAX: i64 = 4_096;

/// A kind of thing: the statement that removes at most `$1` of it that are due by `$2`, and returns
/// how many it removed.
struct Kind {
    sql: String,
    due: Box<dyn ToSql + Sync + Send>,
}

/// Removes what is due, unless another process has taken the store over since this epoch. Commits
/// nothing by itself.
pub(super) async fn sweep(
    retention: &Retention,
    max: u32,
    (slot, epoch): (u8, u64),
    client: &ClientWrapper,
) -> Result<SweepReport, PostgresFault> {
    if !begin_unless_superseded(epoch, client).await? {
        return Ok(SweepReport::default());
    }
    let mut room = i64::from(max).min(THINGS_MAX);
    let mut swept = SweepReport::default();
    let mut kinds = kinds(retention, slot);
    while !kinds.is_empty() && room > 0 {
        let mut unfinished = Vec::new();
        let mut left = i64::try_from(kinds.len()).unwrap_or(i64::MAX);
        for kind in kinds {
            let share = (room + left - 1) / left;
            left -= 1;
            let removed = match share {
                0 => 0,
                _ => kind.remove(share, client).await?,
            };
            room -= removed;
            swept.removed += removed.cast_unsigned();
            if removed == share {
                unfinished.push(kind);
            }
        }
        kinds = unfinished;
    }
    swept.more = !kinds.is_empty();
    for marks in MARKS {
        let marks = client.prepare_cached(marks).await?;
        client.execute(&marks, &[]).await?;
    }
    let former_sims = "DELETE FROM former_sim WHERE last_entry < $1";
    let former_sims = client.prepare_cached(former_sims).await?;
    client
        .execute(&former_sims, &[&end_of_spans(retention.entries_before)])
        .await?;
    client.batch_execute("COMMIT").await?;
    Ok(swept)
}

/// Drops the partitions of which every row is too old, unless another process has taken the store
/// over since this epoch, and makes those of the next days.
pub(super) async fn tidy_partitions(
    retention: &Retention,
    now: Timestamp,
    (partitions, epoch): (&mut Partitions, u64),
    client: &ClientWrapper,
) -> Result<(), PostgresFault> {
    partitions.make_ahead(now, client).await?;
    for (table, before) in [
        (Daily::Event, retention.events_before),
        (Daily::LogEntry, retention.entries_before),
    ] {
        while partitions.drop_oldest(table, before, epoch, client).await? {}
    }
    Ok(())
}

impl Kind {
    async fn remove(&self, max: i64, client: &ClientWrapper) -> Result<i64, PostgresFault> {
        let statement = client.prepare_cached(&self.sql).await?;
        let due = &*self.due as &(dyn ToSql + Sync);
        let removed = client.query_one(&statement, &[&max, due]).await?;
        Ok(removed.get(0))
    }
}

/// The id before which the rows of spans of time are due that have ended by an instant.
fn end_of_spans(before: Timestamp) -> SqlId {
    let span = before.as_ms().div_euclid(SWEPT_MS);
    SqlId::made_from(Timestamp::from_ms(span.saturating_mul(SWEPT_MS)))
}

fn kinds(retention: &Retention, slot: u8) -> Vec<Kind> {
    let kind = |sql: &str, due: Box<dyn ToSql + Sync + Send>| Kind {
        sql: sql.to_owned(),
        due,
    };
    let id = |at| Box::new(SqlId::made_from(at));
    let first_sms = SmsId::first_at(retention.sms_before);
    vec![
        kind(TOKENS, Box::new(SqlTime(retention.tokens_before))),
        kind(IDEMPOTENCY, Box::new(SqlTime(retention.idempotency_before))),
        Kind {
            sql: actions(slot),
            due: Box::new(end_of_spans(retention.actions_before)),
        },
        kind(ENTRIES, Box::new(end_of_spans(retention.entries_before))),
        kind(EVENTS, id(retention.events_before)),
        kind(
            DEAD_LETTERS,
            Box::new(SqlTime(retention.dead_letters_before)),
        ),
        kind(JOBS, id(retention.jobs_before)),
        kind(JOB_REQUESTS, id(retention.jobs_before)),
        kind(JOB_PARTS, id(retention.jobs_before)),
        kind(SMS, Box::new(first_sms.number().cast_signed())),
        kind(REMOVED_LOGS, Box::new(true)),
        kind(REMOVED_EVENTS, Box::new(true)),
        kind(REMOVED_RETRIES, Box::new(true)),
        kind(REMOVED_DEAD_LETTERS, Box::new(true)),
        kind(REMOVED_DEFINITIONS, Box::new(true)),
        kind(REMOVED_JOB_PARTS, Box::new(true)),
    ]
}

/// Final requests, which are counted out.
fn actions(slot: u8) -> String {
    format!(
        "WITH gone AS (DELETE FROM action WHERE id IN (SELECT id FROM action \
         WHERE id < $2 AND status > 2 ORDER BY id LIMIT $1) \
         RETURNING customer, protocol, status), counted AS (INSERT INTO action_count \
         (customer, protocol, status, slot, count) SELECT customer, protocol, status, {slot}, \
         -count(*) FROM gone GROUP BY 1, 2, 3 ON CONFLICT (customer, protocol, status, slot) \
         DO UPDATE SET count = action_count.count + excluded.count) SELECT count(*) FROM gone"
    )
}

const TOKENS: &str = "WITH gone AS (DELETE FROM access_token WHERE digest IN \
     (SELECT digest FROM access_token WHERE expires_at < $2 ORDER BY expires_at LIMIT $1) \
     RETURNING 1) SELECT count(*) FROM gone";

const IDEMPOTENCY: &str = "WITH gone AS (DELETE FROM idempotency \
     WHERE (key, device, device_number) IN (SELECT key, device, device_number FROM idempotency \
     WHERE made_at < $2 ORDER BY made_at LIMIT $1) RETURNING 1) SELECT count(*) FROM gone";

const ENTRIES: &str = "WITH due AS (SELECT customer, id FROM log_entry WHERE id < $2 LIMIT $1), \
     gone AS (DELETE FROM log_entry e USING due WHERE e.customer = due.customer \
     AND e.id = due.id RETURNING 1) SELECT count(*) FROM gone";

const EVENTS: &str = "WITH due AS (SELECT id, sequence FROM event WHERE id < $2 \
     ORDER BY id LIMIT $1), gone AS (DELETE FROM event e USING due WHERE e.id = due.id \
     AND e.sequence = due.sequence RETURNING 1) SELECT count(*) FROM gone";

const DEAD_LETTERS: &str = "WITH gone AS (DELETE FROM dead_letter \
     WHERE (destination, sequence) IN (SELECT destination, sequence FROM dead_letter \
     WHERE dead_at < $2 ORDER BY dead_at LIMIT $1) RETURNING 1) SELECT count(*) FROM gone";

const JOBS: &str = "WITH gone AS (DELETE FROM job WHERE id IN \
     (SELECT id FROM job WHERE id < $2 ORDER BY id LIMIT $1) RETURNING id), \
     requests AS (DELETE FROM job_request WHERE job IN (SELECT id FROM gone)) \
     SELECT count(*) FROM gone";

/// Those of jobs that were removed or never created.
const JOB_REQUESTS: &str = "WITH gone AS (DELETE FROM job_request WHERE job IN \
     (SELECT job FROM job_request r WHERE job < $2 AND NOT EXISTS \
     (SELECT FROM job WHERE id = r.job) ORDER BY job LIMIT $1) RETURNING 1) \
     SELECT count(*) FROM gone";

const JOB_PARTS: &str = "WITH gone AS (DELETE FROM job_part WHERE (job, part) IN \
     (SELECT job, part FROM job_part p WHERE job < $2 AND NOT EXISTS \
     (SELECT FROM job WHERE id = p.job) ORDER BY job, part LIMIT $1) RETURNING 1) \
     SELECT count(*) FROM gone";

/// SMS with all their parts, of which the first is the oldest and has the id of the SMS.
const SMS: &str = "WITH gone AS (DELETE FROM sms WHERE id IN \
     (SELECT id FROM sms WHERE id < $2 ORDER BY id LIMIT $1) RETURNING 1) \
     SELECT count(*) FROM gone";

// What is left of removed customers, destinations and jobs: read in the order of an index, of each
// alone. A plan for all at once may read the whole table.

const REMOVED_LOGS: &str = "WITH due AS (SELECT e.customer, e.id FROM removed_customer r \
     CROSS JOIN LATERAL (SELECT customer, id FROM log_entry WHERE customer = r.customer \
     AND id <= r.last_entry ORDER BY customer, id LIMIT $1) e \
     WHERE $2::boolean LIMIT $1), gone AS (DELETE FROM log_entry e USING due \
     WHERE e.customer = due.customer AND e.id = due.id RETURNING 1) SELECT count(*) FROM gone";

const REMOVED_EVENTS: &str = "WITH due AS (SELECT e.id, e.sequence FROM removed_customer r \
     CROSS JOIN LATERAL (SELECT id, sequence FROM event WHERE customer = r.customer \
     AND sequence <= r.last_event ORDER BY customer, partition, sequence LIMIT $1) e \
     WHERE $2::boolean LIMIT $1), gone AS (DELETE FROM event e USING due WHERE e.id = due.id \
     AND e.sequence = due.sequence RETURNING 1) SELECT count(*) FROM gone";

const REMOVED_RETRIES: &str = "WITH due AS (SELECT p.destination, p.sequence \
     FROM removed_destination r CROSS JOIN LATERAL (SELECT destination, sequence \
     FROM pending_retry WHERE destination = r.id ORDER BY destination, sequence LIMIT $1) p \
     WHERE $2::boolean LIMIT $1), gone AS (DELETE FROM pending_retry p USING due \
     WHERE p.destination = due.destination AND p.sequence = due.sequence RETURNING 1) \
     SELECT count(*) FROM gone";

const REMOVED_DEAD_LETTERS: &str = "WITH due AS (SELECT d.destination, d.sequence \
     FROM removed_destination r CROSS JOIN LATERAL (SELECT destination, sequence \
     FROM dead_letter WHERE destination = r.id ORDER BY destination, sequence LIMIT $1) d \
     WHERE $2::boolean LIMIT $1), gone AS (DELETE FROM dead_letter d USING due \
     WHERE d.destination = due.destination AND d.sequence = due.sequence RETURNING 1) \
     SELECT count(*) FROM gone";

const REMOVED_DEFINITIONS: &str = "WITH gone AS (DELETE FROM removed_definition WHERE id IN \
     (SELECT id FROM removed_definition WHERE $2::boolean LIMIT $1) RETURNING 1) \
     SELECT count(*) FROM gone";

const REMOVED_JOB_PARTS: &str = "WITH due AS (SELECT p.job, p.part FROM removed_job r \
     CROSS JOIN LATERAL (SELECT job, part FROM job_part WHERE job = r.id ORDER BY job, part \
     LIMIT $1) p WHERE $2::boolean LIMIT $1), gone AS (DELETE FROM job_part p USING due \
     WHERE p.job = due.job AND p.part = due.part RETURNING 1) SELECT count(*) FROM gone";

/// Removes the marks of what has nothing left. Marks are no things. `OFFSET 0` has each mark looked
/// up in an index: a join would read every row of the other table.
///
/// Ids and numbers of events have almost the same order. So the event with the first id tells which
/// removed histories are worth a look, which costs one for each day; it does not tell that they are
/// gone. A node that removes a device again meanwhile changes its mark, which stays then.
const MARKS: [&str; 5] = [
    "DELETE FROM removed_job r WHERE NOT EXISTS (SELECT FROM job_part p WHERE p.job = r.id \
     OFFSET 0)",
    "DELETE FROM removed_customer r WHERE NOT EXISTS (SELECT FROM log_entry e \
     WHERE e.customer = r.customer AND e.id <= r.last_entry OFFSET 0) AND NOT EXISTS (SELECT \
     FROM event e WHERE e.customer = r.customer AND e.sequence <= r.last_event OFFSET 0)",
    "DELETE FROM removed_history r USING (SELECT device, last_event FROM removed_history \
     WHERE last_event < coalesce((SELECT sequence FROM event ORDER BY id LIMIT 1), \
     9223372036854775807) ORDER BY last_event LIMIT 4096) due WHERE r.device = due.device \
     AND r.last_event = due.last_event AND NOT EXISTS (SELECT FROM event e \
     WHERE e.device = due.device AND e.sequence <= due.last_event OFFSET 0)",
    "DELETE FROM destination_cursor c USING removed_destination r WHERE c.destination = r.id",
    "DELETE FROM removed_destination r WHERE NOT EXISTS (SELECT FROM pending_retry p \
     WHERE p.destination = r.id OFFSET 0) AND NOT EXISTS (SELECT FROM dead_letter d \
     WHERE d.destination = r.id OFFSET 0)",
];
