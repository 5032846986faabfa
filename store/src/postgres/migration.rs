//! How is a store on PostgreSQL read as a whole, and how is a new one written from another engine?
//!
//! A database that is being written has a table with the place in the source that was reached, and
//! is refused while that is there. Each page is one transaction. Rows are inserted, never replaced:
//! a row that is there already is an error.

mod records;
mod rows;

use std::fmt::Write as _;

use deadpool_postgres::{Object, Pool};
use engine::delivery::backlog::Sequence;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use self::records::{DERIVED, RECORDS, RowCells};
pub(crate) use self::rows::PageRows;
use self::rows::{encoded, layout_of};
use super::cell::{Cell, ColumnType, Parameter};
use super::fault::PostgresFault;
use super::open::{self, Server};
use super::partitions::Partitions;
use super::pipeline::Pipeline;
use super::sql_types::{SqlId, SqlTime};
use super::table::{Layout, SqlTable};
use crate::migration::moved::{Moved, Singles};
use crate::migration::totals::Totals;
use crate::migration::{MovedPage, PAGE_BYTES};
use crate::record::Unreadable;
use crate::record::server_key::{read_server_key, write_server_key};
use crate::{MigrationError, PostgresOpenError, PostgresOptions};

/// The rows that are read at once to be compared.
const ROWS_AT_ONCE: i32 = 500;

/// The rows of the first page of a table, before the size of its rows is known.
const FIRST_PAGE_ROWS: i64 = 100;

/// The most rows of a page.
const PAGE_ROWS_MAX: i64 = 4_000;

/// Nothing has to survive a crash but what was written before it: the place that was reached is in
/// the same transaction. A page is found by an index, whatever the statistics say.
const SESSION: &str = "SET synchronous_commit = off; SET statement_timeout = 0; \
     SET idle_in_transaction_session_timeout = 0; SET enable_sort = off; \
     SET plan_cache_mode = force_custom_plan";

const BEGIN: &str = "CREATE TABLE unfinished_migration (only_row boolean PRIMARY KEY DEFAULT true \
     CHECK (only_row), source text NOT NULL, reached bytea)";

/// Brings what was committed without waiting for it to the disk as well.
const RELEASE: &str = "RESET synchronous_commit; DROP TABLE unfinished_migration";

/// What tells a store, as it is, from every other: its processes, and how much each has written.
const MARK: &str = "SELECT format('database %s, schema %s, epoch %s, groups %s', \
     current_database(), current_schema(), epoch, (SELECT md5(coalesce(string_agg( \
     id::text || last_group::text, ',' ORDER BY id), '')) FROM committer)) FROM store_state";

const SINGLES: &str = "SELECT epoch, server_key, newest FROM store_state, event_sequence";

/// A connection, and the runtime on which it lives.
struct Connection {
    client: Object,
    _pool: Pool,
    runtime: Runtime,
}

impl Connection {
    /// Connects, and brings the schema up to date.
    fn open(options: &PostgresOptions) -> Result<Self, MigrationError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store-postgres")
            .enable_all()
            .build()
            .map_err(PostgresOpenError::Threads)?;
        let pool = Server::of(options).pool(1);
        let client = runtime.block_on(async {
            let client = pool.get().await.map_err(open::no_connection)?;
            let set = client.batch_execute(SESSION).await;
            set.map_err(|error| open::lost(&error))?;
            Ok::<_, PostgresOpenError>(client)
        })?;
        Ok(Self {
            client,
            _pool: pool,
            runtime,
        })
    }

    fn run(&self, statements: &str) -> Result<(), MigrationError> {
        let run = self.client.batch_execute(statements);
        self.runtime.block_on(run).map_err(refused)
    }

    fn row(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Row, MigrationError> {
        let row = self.client.query_one(query, parameters);
        self.runtime.block_on(row).map_err(refused)
    }

    /// What there is one of.
    fn singles(&self) -> Result<Singles, MigrationError> {
        let row = self.row(SINGLES, &[])?;
        let (epoch, newest): (i64, i64) = (row.get(0), row.get(2));
        let server_key: Option<Vec<u8>> = row.get(1);
        let server_key = server_key.map(|record| read_server_key(&record));
        Ok(Singles {
            epoch: epoch.cast_unsigned(),
            newest: Sequence(newest.cast_unsigned()),
            server_key: server_key.transpose().map_err(failed)?,
        })
    }

    /// The rows of every table. The record of a row counts as this version writes it.
    fn totals(&mut self) -> Result<Totals, MigrationError> {
        let mut totals = Totals::default();
        let derived = DERIVED.into_iter().map(|table| (table, None));
        let records = RECORDS.into_iter();
        let records = records.map(|(table, _, reader)| (table, Some(reader)));
        for (table, reader) in records.chain(derived) {
            let layout = layout_of(table);
            let record = layout
                .columns
                .iter()
                .position(|(name, _)| *name == "record");
            let mut add = |mut row: Vec<Cell>| -> Result<(), Unreadable> {
                if let Some(reader) = reader {
                    let Some(moved) = reader(&RowCells(&row))? else {
                        return Ok(());
                    };
                    let mut page = PageRows::default();
                    page.add(moved);
                    let written = page.of(table).first();
                    if let Some(place) = record
                        && let Some(written) = written.and_then(|written| written.get(place))
                        && let Some(cell) = row.get_mut(place)
                    {
                        cell.clone_from(written);
                    }
                }
                totals.add(layout.name, &encoded(&row));
                Ok(())
            };
            let all = each(&mut self.client, &layout, &mut add);
            self.runtime
                .block_on(all)
                .map_err(|fault| of_table(&layout, fault))?;
        }
        Ok(totals)
    }
}

/// Reads every row of a table, in any order.
async fn each(
    client: &mut Object,
    layout: &Layout,
    take: &mut dyn FnMut(Vec<Cell>) -> Result<(), Unreadable>,
) -> Result<(), PostgresFault> {
    let transaction = client.transaction().await?;
    let query = format!("SELECT {} FROM {} t", columns(layout.columns), layout.name);
    let query = transaction.prepare(&query).await?;
    let rows = transaction.bind(&query, &[]).await?;
    loop {
        let page = transaction.query_portal(&rows, ROWS_AT_ONCE).await?;
        if page.is_empty() {
            return Ok(transaction.commit().await?);
        }
        for row in page {
            take(cells(layout.columns, &row)?)?;
        }
    }
}

/// A store on PostgreSQL that is moved.
pub(crate) struct PostgresSource(Connection);

impl PostgresSource {
    /// Opens the store.
    pub(crate) fn open(options: &PostgresOptions) -> Result<Self, MigrationError> {
        let connection = Connection::open(options)?;
        let is_there = open::is_there(&connection.client);
        if !connection.runtime.block_on(is_there)? {
            return Err(MigrationError::NoSource);
        }
        let pool = Server::of(options).pool(1);
        connection.runtime.block_on(open::migrate(&pool))?;
        let unfinished = open::refuse_unfinished(&connection.client);
        connection.runtime.block_on(unfinished)?;
        Ok(Self(connection))
    }

    /// What tells it from every other store, and from itself once something is written.
    pub(crate) fn mark(&self) -> Result<String, MigrationError> {
        Ok(self.0.row(MARK, &[])?.get(0))
    }

    /// Refuses every further write of the active node to it. The epochs of partitions are moved as
    /// they are: what another node writes meanwhile changes the mark.
    pub(crate) fn fence(&mut self) -> Result<(), MigrationError> {
        self.0.run("UPDATE store_state SET epoch = epoch + 1")
    }

    /// What there is one of.
    pub(crate) fn singles(&self) -> Result<Singles, MigrationError> {
        self.0.singles()
    }

    /// The records behind a place.
    pub(crate) fn pages(
        &self,
        reached: Option<Vec<u8>>,
    ) -> impl FnMut() -> Result<Option<MovedPage<Vec<Moved>>>, MigrationError> + Send + use<'_>
    {
        let mut place = reached.as_deref().map_or(Some((0, Vec::new())), decoded);
        let mut rows_max = FIRST_PAGE_ROWS;
        move || {
            let Some((table, after)) = &mut place else {
                return Err(failed("the place that was reached cannot be read"));
            };
            while let Some(records) = RECORDS.get(*table) {
                let layout = layout_of(records.0);
                let next = next_page(&self.0.client, records, after, rows_max);
                let next = self.0.runtime.block_on(next);
                let page = next.map_err(|fault| of_table(&layout, fault))?;
                let Some(last) = page.last else {
                    *table += 1;
                    after.clear();
                    rows_max = FIRST_PAGE_ROWS;
                    continue;
                };
                *after = last;
                rows_max = rows_for(page.rows, page.bytes);
                return Ok(Some(MovedPage {
                    rows: page.moved,
                    count: page.rows,
                    table: layout.name,
                    reached: encoded_place(layout.name, after),
                }));
            }
            Ok(None)
        }
    }

    /// The rows of every table.
    pub(crate) fn totals(&mut self) -> Result<Totals, MigrationError> {
        self.0.totals()
    }
}

/// The next rows of a table.
struct TablePage {
    moved: Vec<Moved>,
    rows: u64,
    bytes: usize,
    /// The key of the last row, if there is one.
    last: Option<Vec<Cell>>,
}

/// How many rows the next page has, when one of so many had so many bytes.
fn rows_for(rows: u64, bytes: usize) -> i64 {
    let fitting = rows.saturating_mul(PAGE_BYTES as u64) / (bytes as u64).max(1);
    i64::try_from(fitting).map_or(PAGE_ROWS_MAX, |rows| rows.clamp(1, PAGE_ROWS_MAX))
}

async fn next_page(
    client: &Object,
    (table, keys, reader): &(SqlTable, &[&str], records::RowReader),
    after: &[Cell],
    rows_max: i64,
) -> Result<TablePage, PostgresFault> {
    let layout = layout_of(*table);
    let key = places(&layout, keys);
    let by = keys.iter().map(|name| format!("t.{name}"));
    let by = by.collect::<Vec<_>>().join(", ");
    let mut query = format!("SELECT {} FROM {} t", columns(layout.columns), layout.name);
    if !after.is_empty() {
        let types = key.iter().filter_map(|place| layout.columns.get(*place));
        let after = (1..).zip(types).map(|(number, (_, column))| {
            let array = column.array_name();
            format!("${number}::{}", array.trim_end_matches("[]"))
        });
        let after = after.collect::<Vec<_>>().join(", ");
        let _ = write!(query, " WHERE ({by}) > ({after})");
    }
    let _ = write!(query, " ORDER BY {by} LIMIT ${}", after.len() + 1);
    let query = client.prepare_cached(&query).await?;
    let parameters = after.iter().map(Cell::parameter);
    let parameters = parameters.chain([Box::new(rows_max) as Parameter<'_>]);
    let parameters: Vec<Parameter<'_>> = parameters.collect();
    let parameters = parameters.iter().map(|it| &**it as &(dyn ToSql + Sync));
    let rows = client
        .query(&query, &parameters.collect::<Vec<_>>())
        .await?;
    let mut moved = Vec::with_capacity(rows.len());
    let (mut bytes, mut last) = (0, None);
    for row in &rows {
        let cells = cells(layout.columns, row)?;
        bytes += cells.iter().map(Cell::bytes).sum::<usize>();
        moved.extend(reader(&RowCells(&cells))?);
        last = Some(cells);
    }
    let last = last.map(|row| {
        let key = key.iter().filter_map(|place| row.get(*place));
        key.cloned().collect()
    });
    Ok(TablePage {
        moved,
        rows: rows.len() as u64,
        bytes,
        last,
    })
}

/// A database into which a store is moved.
pub(crate) struct PostgresTarget {
    connection: Connection,
    partitions: Partitions,
    reached: Option<Vec<u8>>,
}

impl PostgresTarget {
    /// Begins with a source in an empty database, or continues.
    pub(crate) fn begin(options: &PostgresOptions, source: &str) -> Result<Self, MigrationError> {
        let connection = Connection::open(options)?;
        let pool = Server::of(options).pool(1);
        connection.runtime.block_on(open::migrate(&pool))?;
        let begun = open::is_unfinished(&connection.client);
        let reached = match connection.runtime.block_on(begun)? {
            true => {
                let place = "SELECT source, reached FROM unfinished_migration";
                let place = connection.row(place, &[])?;
                if place.get::<_, String>(0) != source {
                    return Err(MigrationError::OtherSource);
                }
                place.get(1)
            }
            false => {
                if connection.row(&anything(), &[])?.get(0) {
                    return Err(MigrationError::NotEmpty("the database has a store"));
                }
                let begin = begin(&connection.client, source);
                connection.runtime.block_on(begin).map_err(failed)?;
                None
            }
        };
        let mut partitions = Partitions::default();
        let load = partitions.load(&connection.client);
        connection.runtime.block_on(load).map_err(failed)?;
        Ok(Self {
            connection,
            partitions,
            reached,
        })
    }

    /// The place in the source that was reached.
    pub(crate) fn reached(&self) -> Option<Vec<u8>> {
        self.reached.clone()
    }

    /// Writes a page.
    pub(crate) fn write(&mut self, page: MovedPage<PageRows>) -> Result<(), MigrationError> {
        let client = &self.connection.client;
        let written = async {
            let days = page.rows.days.iter().copied();
            self.partitions.ensure(days, client).await?;
            let counts = page.rows.counts();
            let mut pipeline = Pipeline::default();
            pipeline.add("BEGIN", vec![]);
            for (table, rows) in &page.rows.tables {
                let layout = layout_of(*table);
                pipeline.add(layout.insert(), arrays(&layout, rows));
            }
            for (table, rows) in &counts {
                let layout = table.layout();
                pipeline.add(layout.put(), arrays(&layout, rows));
            }
            let reached = "UPDATE unfinished_migration SET reached = $1";
            pipeline.add(reached, vec![Box::new(&page.reached)]);
            pipeline.add("COMMIT", vec![]);
            pipeline.run(client).await
        };
        let written = self.connection.runtime.block_on(written);
        written.map(drop).map_err(failed)
    }

    /// Writes what there is one of.
    pub(crate) fn end(&mut self, singles: &Singles) -> Result<(), MigrationError> {
        let (epoch, newest) = (singles.epoch.cast_signed(), singles.newest.0.cast_signed());
        let server_key = singles.server_key.as_ref().map(write_server_key);
        let state = "UPDATE store_state SET epoch = $1, server_key = $2 RETURNING true";
        self.connection.row(state, &[&epoch, &server_key])?;
        let sequence = "UPDATE event_sequence SET newest = $1 RETURNING true";
        self.connection.row(sequence, &[&newest])?;
        Ok(())
    }

    /// The rows of every table.
    pub(crate) fn totals(&mut self) -> Result<Totals, MigrationError> {
        self.connection.totals()
    }

    /// Lets services open it.
    pub(crate) fn release(self) -> Result<(), MigrationError> {
        // The plans of queries would be those of empty tables.
        let tables = every_table().map(|table| layout_of(table).name);
        let tables: Vec<_> = tables.collect();
        self.connection
            .run(&format!("ANALYZE {}", tables.join(", ")))?;
        self.connection.run(RELEASE)
    }
}

/// The rows of a table as an array for each column.
fn arrays<'r>(layout: &Layout, rows: &'r [Vec<Cell>]) -> Vec<Parameter<'r>> {
    let columns = (0..).zip(layout.columns);
    let arrays = columns.map(|(place, (_, column))| {
        column.array(rows.iter().filter_map(move |row| row.get(place)))
    });
    arrays.collect()
}

/// Where columns are in a row.
fn places(layout: &Layout, names: &[&str]) -> Vec<usize> {
    let place = |name: &&str| layout.columns.iter().position(|(column, _)| column == name);
    names.iter().filter_map(place).collect()
}

async fn begin(client: &Object, source: &str) -> Result<(), PostgresFault> {
    client.batch_execute("BEGIN").await?;
    client.batch_execute(BEGIN).await?;
    let insert = "INSERT INTO unfinished_migration (source) VALUES ($1)";
    client.execute(insert, &[&source]).await?;
    Ok(client.batch_execute("COMMIT").await?)
}

fn every_table() -> impl Iterator<Item = SqlTable> {
    let records = RECORDS.into_iter().map(|(table, _, _)| table);
    records.chain(DERIVED)
}

/// Whether anything is stored.
fn anything() -> String {
    let rows = every_table().map(|table| {
        let name = layout_of(table).name;
        format!("EXISTS (SELECT FROM {name})")
    });
    let rows: Vec<_> = rows.collect();
    format!("SELECT epoch > 0 OR {} FROM store_state", rows.join(" OR "))
}

/// What is read of the columns of a row.
fn columns(columns: &[(&str, ColumnType)]) -> String {
    let read = columns.iter().map(|(name, column)| match column {
        ColumnType::Number => format!("t.{name}::bigint"),
        ColumnType::Bool
        | ColumnType::Bytes
        | ColumnType::Id
        | ColumnType::Ip
        | ColumnType::Text
        | ColumnType::Time => format!("t.{name}"),
    });
    read.collect::<Vec<_>>().join(", ")
}

/// The cells of a row.
fn cells(columns: &[(&str, ColumnType)], row: &Row) -> Result<Vec<Cell>, tokio_postgres::Error> {
    let columns = (0..).zip(columns);
    let cells = columns.map(|(place, (_, column))| {
        Ok(match column {
            ColumnType::Bool => row.try_get::<usize, Option<bool>>(place)?.into(),
            ColumnType::Bytes => row.try_get::<_, Option<Vec<u8>>>(place)?.into(),
            ColumnType::Id => {
                let id: Option<SqlId> = row.try_get(place)?;
                id.map_or(Cell::Null, Cell::Id)
            }
            ColumnType::Ip => {
                let ip: Option<std::net::IpAddr> = row.try_get(place)?;
                ip.map_or(Cell::Null, Cell::Ip)
            }
            ColumnType::Number => row.try_get::<_, Option<i64>>(place)?.into(),
            ColumnType::Text => row.try_get::<_, Option<&str>>(place)?.into(),
            ColumnType::Time => {
                let at: Option<SqlTime> = row.try_get(place)?;
                at.map_or(Cell::Null, Cell::Time)
            }
        })
    });
    cells.collect()
}

/// The records of rows that were not written, table by table in the order in which they are moved.
#[cfg(test)]
pub(crate) fn records_of(pages: Vec<MovedPage<PageRows>>) -> Vec<(&'static str, Vec<Moved>)> {
    let records = RECORDS.iter().map(|(table, keys, reader)| {
        let layout = layout_of(*table);
        let key = places(&layout, keys);
        let rows = pages.iter().flat_map(|page| page.rows.of(*table));
        let mut rows: Vec<&Vec<Cell>> = rows.collect();
        rows.sort_by_key(|row| key.iter().map(|place| &row[*place]).collect::<Vec<_>>());
        let moved = rows
            .iter()
            .filter_map(|row| reader(&RowCells(row)).unwrap());
        (layout.name, moved.collect())
    });
    records.collect()
}

/// A table, and the key of a row of it.
fn encoded_place(table: &str, key: &[Cell]) -> Vec<u8> {
    let mut place = vec![Cell::from(table)];
    place.extend_from_slice(key);
    encoded(&place)
}

/// The place of a table among those of records, and the key of a row of it.
fn decoded(place: &[u8]) -> Option<(usize, Vec<Cell>)> {
    let mut cells = rows::decoded(place)?.into_iter();
    let Cell::Text(name) = cells.next()? else {
        return None;
    };
    let mut records = RECORDS.iter();
    let table = records.position(|(table, _, _)| layout_of(*table).name == name)?;
    Some((table, cells.collect()))
}

fn of_table(layout: &Layout, fault: PostgresFault) -> MigrationError {
    MigrationError::Failed(format!("the table {} cannot be read: {fault}", layout.name))
}

fn refused(error: tokio_postgres::Error) -> MigrationError {
    failed(PostgresFault::from(error))
}

fn failed(why: impl ToString) -> MigrationError {
    MigrationError::Failed(why.to_string())
}
