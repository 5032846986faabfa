//! Which partitions do the tables of events and entries have? One for each day of their ids.
//!
//! Partitions are made ahead, and on demand by the group that needs one: beside the table and then
//! attached, which waits for no query.

use std::collections::BTreeSet;

use deadpool_postgres::ClientWrapper;
use engine::ids::{EntryId, EventId};
use engine::moment::Timestamp;
use tokio_postgres::error::SqlState;

use super::fault::PostgresFault;
use super::fence::begin_unless_superseded;
use super::sql_types::SqlId;

const DAY_MS: i64 = 86_400_000;

/// How many days are made ahead, with the present one.
const DAYS_AHEAD: i64 = 3;

/// A table that has a partition for each day.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Daily {
    /// The table of events.
    Event,
    /// The table of the administration log.
    LogEntry,
}

/// A day of a table.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Day {
    table: Daily,
    /// Its number since 1970, in UTC.
    number: i64,
}

/// The partitions that are known to exist.
#[derive(Default)]
pub(super) struct Partitions(BTreeSet<Day>);

impl Daily {
    const ALL: [Self; 2] = [Self::Event, Self::LogEntry];

    fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::LogEntry => "log_entry",
        }
    }
}

impl Day {
    /// The day of an event.
    pub(super) fn of_event(id: EventId) -> Self {
        Self::of(Daily::Event, id.as_bytes())
    }

    /// The day of an entry.
    pub(super) fn of_entry(id: EntryId) -> Self {
        Self::of(Daily::LogEntry, id.as_bytes())
    }

    fn of(table: Daily, id: &[u8; 16]) -> Self {
        let [a, b, c, d, e, f, ..] = *id;
        let ms = i64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let number = ms / DAY_MS;
        Self { table, number }
    }

    /// Its partition: the table, and the number of the day.
    fn name(self) -> String {
        format!("{}_{}", self.table.name(), self.number)
    }

    fn from_name(name: &str) -> Option<Self> {
        let (table, number) = name.rsplit_once('_')?;
        let table = Daily::ALL.into_iter().find(|it| it.name() == table)?;
        let number = number.parse().ok()?;
        Some(Self { table, number })
    }

    fn begins_at(self) -> Timestamp {
        Timestamp::from_ms(self.number * DAY_MS)
    }

    fn ends_at(self) -> Timestamp {
        Timestamp::from_ms((self.number + 1) * DAY_MS)
    }

    /// What makes its partition.
    fn creation(self) -> String {
        let (name, table) = (self.name(), self.table.name());
        let [from, to] = [self.begins_at(), self.ends_at()].map(|at| literal(SqlId::made_from(at)));
        format!(
            "CREATE TABLE {name} (LIKE {table} INCLUDING ALL); \
             ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ('{from}') TO ('{to}')"
        )
    }
}

impl Partitions {
    /// Reads which exist.
    pub(super) async fn load(&mut self, client: &ClientWrapper) -> Result<(), PostgresFault> {
        let names = client
            .prepare_cached(
                "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
                 WHERE i.inhparent IN ('event'::regclass, 'log_entry'::regclass) \
                 AND c.relkind = 'r'",
            )
            .await?;
        let names = client.query(&names, &[]).await?;
        let names = names.iter().map(|row| row.get::<_, String>(0));
        self.0 = names.filter_map(|name| Day::from_name(&name)).collect();
        Ok(())
    }

    /// Makes those of some days that do not exist.
    pub(super) async fn ensure(
        &mut self,
        days: impl Iterator<Item = Day>,
        client: &ClientWrapper,
    ) -> Result<(), PostgresFault> {
        for day in days {
            if self.0.contains(&day) {
                continue;
            }
            // One statement of several parts is one transaction.
            if let Err(refused) = client.batch_execute(&day.creation()).await {
                // Another process may have made it.
                self.load(client).await?;
                if !self.0.contains(&day) {
                    return Err(refused.into());
                }
            }
            self.0.insert(day);
        }
        Ok(())
    }

    /// Makes those of the next days.
    pub(super) async fn make_ahead(
        &mut self,
        now: Timestamp,
        client: &ClientWrapper,
    ) -> Result<(), PostgresFault> {
        let today = now.as_ms().div_euclid(DAY_MS).max(0);
        let ahead = (today..today + DAYS_AHEAD).flat_map(|number| {
            let tables = Daily::ALL.into_iter();
            tables.map(move |table| Day { table, number })
        });
        self.ensure(ahead, client).await
    }

    /// Drops the oldest partition of a table, if all of it is from before an instant and no other
    /// process has taken the store over since an epoch; returns whether it was dropped.
    pub(super) async fn drop_oldest(
        &mut self,
        table: Daily,
        before: Timestamp,
        epoch: u64,
        client: &ClientWrapper,
    ) -> Result<bool, PostgresFault> {
        let mut of_table = self.0.iter().filter(|day| day.table == table);
        let Some(day) = of_table.next().filter(|day| day.ends_at() <= before) else {
            return Ok(false);
        };
        let day = *day;
        if !begin_unless_superseded(epoch, client).await? {
            return Ok(false);
        }
        // It waits for the queries under way, and all that follow wait for it: not for long,
        // because a backup reads for hours.
        let dropping = format!(
            "SET LOCAL lock_timeout = '100ms'; DROP TABLE IF EXISTS {}; COMMIT",
            day.name()
        );
        match client.batch_execute(&dropping).await {
            Ok(()) => {}
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                client.batch_execute("ROLLBACK").await?;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.0.remove(&day);
        Ok(true)
    }
}

/// An id as it is written in a statement.
fn literal(SqlId(id): SqlId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_the_ids_of_its_day() {
        let day = Day::of_event(EventId::from_bytes([
            0x01, 0xa2, 0x6b, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
        ]));
        let ms = 0x01a2_6b00_0000;
        assert!(day.begins_at().as_ms() <= ms && ms < day.ends_at().as_ms());
        assert_eq!(Day::from_name(&day.name()), Some(day));
        assert_eq!(Day::from_name("event_other"), None);
        let from = literal(SqlId::made_from(day.begins_at()));
        assert!(day.creation().contains(&format!("FROM ('{from}')")));
    }
}
