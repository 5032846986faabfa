//! What does a group put and remove, row by row? The last state of each row, so that each is
//! written once.

use std::collections::{BTreeMap, BTreeSet};

use super::cell::Cell;
use super::pipeline::Pipeline;
use super::plan::Place;
use super::table::SqlTable;

/// The rows that are to be written.
#[derive(Default)]
pub(super) struct Writes(BTreeMap<SqlTable, OfTable>);

/// Rows in the order of their keys, so that processes lock them in the same order.
#[derive(Default)]
struct OfTable {
    put: BTreeMap<Vec<Cell>, Vec<Cell>>,
    removed: BTreeSet<Vec<Cell>>,
}

impl Writes {
    /// Whether what is to be written has to be sent before this row can be put: of a last known
    /// value, either only newer ones follow each other, or its removals.
    pub(super) fn is_before(&self, table: SqlTable, row: &[Cell]) -> bool {
        let other = if table == SqlTable::KnownValue {
            SqlTable::UnknownValue
        } else if table == SqlTable::UnknownValue {
            SqlTable::KnownValue
        } else {
            return false;
        };
        let other = self.0.get(&other);
        other.is_some_and(|other| other.put.contains_key(&row[..table.layout().keys]))
    }

    /// Puts a row.
    pub(super) fn put(&mut self, table: SqlTable, row: Vec<Cell>) {
        /// The time of a last known value: one that arrives late was measured earlier.
        const MEASURED_AT: usize = 2;
        let key = key_of(table, &row);
        let of_table = self.0.entry(table).or_default();
        if matches!(table, SqlTable::KnownValue | SqlTable::UnknownValue)
            && let Some(known) = of_table.put.get(&key)
            && known.get(MEASURED_AT) > row.get(MEASURED_AT)
        {
            return;
        }
        of_table.removed.remove(&key);
        of_table.put.insert(key, row);
    }

    /// Puts a row, unless one with a greater last column is put.
    pub(super) fn raise(&mut self, table: SqlTable, row: Vec<Cell>) {
        let of_table = self.0.entry(table).or_default();
        let before = of_table.put.get(&key_of(table, &row));
        if before.is_none_or(|before| before.last() < row.last()) {
            self.put(table, row);
        }
    }

    /// Adds the last column of a row.
    pub(super) fn add(&mut self, table: SqlTable, mut row: Vec<Cell>) {
        let of_table = self.0.entry(table).or_default();
        let before = of_table.put.get(&key_of(table, &row));
        if let (Some(Cell::Number(before)), Some(Cell::Number(sum))) =
            (before.and_then(|before| before.last()), row.last_mut())
        {
            *sum = sum.saturating_add(*before);
        }
        self.put(table, row);
    }

    /// Removes the row of a key.
    pub(super) fn remove(&mut self, table: SqlTable, key: Vec<Cell>) {
        let of_table = self.0.entry(table).or_default();
        of_table.put.remove(&key);
        of_table.removed.insert(key);
    }

    /// Adds the statements that write it all. The rows of `absent` must not exist: another process
    /// may have put one since they were looked for.
    pub(super) fn add_to<'a>(&'a self, pipeline: &mut Pipeline<'a>, absent: &BTreeSet<Place>) {
        for (table, OfTable { removed, .. }) in &self.0 {
            let layout = table.layout();
            if !removed.is_empty() {
                let keys = &layout.columns[..layout.keys];
                let cells = |place| removed.iter().filter_map(move |key| key.get(place));
                let arrays = (0..).zip(keys);
                let arrays = arrays.map(|(place, (_, column))| column.array(cells(place)));
                pipeline.add(layout.remove(), arrays.collect());
            }
        }
        for (table, OfTable { put, .. }) in &self.0 {
            let is_new = |key: &Vec<Cell>| absent.contains(&(*table, key.clone()));
            let (new, others): (Vec<_>, Vec<_>) = put.iter().partition(|(key, _)| is_new(key));
            let layout = table.layout();
            for (rows, sql) in [(new, layout.insert()), (others, layout.put())] {
                if rows.is_empty() {
                    continue;
                }
                let rows = &rows;
                let arrays = (0..).zip(layout.columns).map(|(place, (_, column))| {
                    column.array(rows.iter().filter_map(|(_, row)| row.get(place)))
                });
                pipeline.add(sql, arrays.collect());
            }
        }
    }
}

fn key_of(table: SqlTable, row: &[Cell]) -> Vec<Cell> {
    row[..table.layout().keys].to_vec()
}

#[cfg(test)]
mod tests {
    use engine::moment::Timestamp;

    use super::*;

    fn value(table: SqlTable, at: i64) -> Vec<Cell> {
        let key = [Cell::from(&[7; 16]), Cell::Bytes(vec![1])];
        let mut row = key.to_vec();
        row.push(Timestamp::from_ms(at).into());
        if table == SqlTable::KnownValue {
            row.push(Cell::Bytes(vec![]));
            row.push(9_i64.into());
        }
        row
    }

    fn put_of(writes: &Writes, table: SqlTable) -> Vec<Vec<Cell>> {
        let of_table = writes.0.get(&table);
        let rows = of_table.into_iter().flat_map(|it| it.put.values().cloned());
        rows.collect()
    }

    #[test]
    fn a_row_is_written_once_as_it_was_left() {
        let mut writes = Writes::default();
        let count = |delta: i64| vec!["acme".into(), 3_i64.into(), delta.into()];
        for delta in [5, -2, 4] {
            writes.add(SqlTable::DeviceCount, count(delta));
        }
        assert_eq!(put_of(&writes, SqlTable::DeviceCount), [count(7)]);
        let cursor = |at: i64| vec![(&[1; 16]).into(), 3_i64.into(), at.into()];
        for at in [5, 9, 7] {
            writes.raise(SqlTable::DestinationCursor, cursor(at));
        }
        assert_eq!(put_of(&writes, SqlTable::DestinationCursor), [cursor(9)]);
        let name = |record: u8| vec!["acme".into(), vec![record].into()];
        writes.put(SqlTable::Customer, name(1));
        writes.remove(SqlTable::Customer, vec!["acme".into()]);
        assert!(put_of(&writes, SqlTable::Customer).is_empty());
        writes.put(SqlTable::Customer, name(2));
        assert_eq!(put_of(&writes, SqlTable::Customer), [name(2)]);
        assert!(writes.0[&SqlTable::Customer].removed.is_empty());
    }

    #[test]
    fn the_value_that_was_measured_last_is_put_and_not_mixed_with_removals() {
        let mut writes = Writes::default();
        for at in [2, 3, 1] {
            let row = value(SqlTable::KnownValue, at);
            assert!(!writes.is_before(SqlTable::KnownValue, &row));
            writes.put(SqlTable::KnownValue, row);
        }
        let expected = [value(SqlTable::KnownValue, 3)];
        assert_eq!(put_of(&writes, SqlTable::KnownValue), expected);
        let removal = value(SqlTable::UnknownValue, 4);
        assert!(writes.is_before(SqlTable::UnknownValue, &removal));
    }
}
