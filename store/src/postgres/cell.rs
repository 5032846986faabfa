//! What is in a column of a row that is written or compared?

use std::net::IpAddr;

use engine::moment::Timestamp;
use tokio_postgres::types::ToSql;

use super::sql_types::{SqlId, SqlTime};

/// A value of a column.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Cell {
    /// A `boolean`.
    Bool(bool),
    /// A `bytea`.
    Bytes(Vec<u8>),
    /// A `uuid`.
    Id(SqlId),
    /// An `inet`.
    Ip(IpAddr),
    /// An integer of any size.
    Number(i64),
    /// A `text`.
    Text(String),
    /// A `timestamptz`.
    Time(SqlTime),
    /// Nothing.
    Null,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ColumnType {
    /// `boolean`.
    Bool,
    /// `bytea`.
    Bytes,
    /// `uuid`.
    Id,
    /// `inet`.
    Ip,
    /// An integer of any size: the server casts it to that of the column.
    Number,
    /// `text`.
    Text,
    /// `timestamptz`.
    Time,
}

/// A parameter of a statement.
pub(super) type Parameter<'a> = Box<dyn ToSql + Sync + Send + 'a>;

impl Cell {
    /// The bytes by which it is compared: those that the server sends for the column.
    pub(super) fn compared(&self) -> Vec<u8> {
        match self {
            Self::Bool(yes) => i64::from(*yes).to_be_bytes().to_vec(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Id(SqlId(id)) => id.to_vec(),
            Self::Number(number) => number.to_be_bytes().to_vec(),
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Ip(_) | Self::Time(_) | Self::Null => Vec::new(),
        }
    }

    /// It alone as a parameter.
    pub(super) fn parameter(&self) -> Parameter<'_> {
        match self {
            Self::Bool(value) => Box::new(value),
            Self::Bytes(value) => Box::new(value.as_slice()),
            Self::Id(value) => Box::new(value),
            Self::Ip(value) => Box::new(value),
            Self::Number(value) => Box::new(value),
            Self::Text(value) => Box::new(value.as_str()),
            Self::Time(value) => Box::new(value),
            Self::Null => Box::new(None::<bool>),
        }
    }

    /// The memory it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Bytes(bytes) => bytes.len(),
                Self::Text(text) => text.len(),
                Self::Bool(_)
                | Self::Id(_)
                | Self::Ip(_)
                | Self::Number(_)
                | Self::Time(_)
                | Self::Null => 0,
            }
    }
}

impl ColumnType {
    /// The type of an array of such cells.
    pub(super) fn array_name(self) -> &'static str {
        match self {
            Self::Bool => "boolean[]",
            Self::Bytes => "bytea[]",
            Self::Id => "uuid[]",
            Self::Ip => "inet[]",
            Self::Number => "bigint[]",
            Self::Text => "text[]",
            Self::Time => "timestamptz[]",
        }
    }

    /// An array of cells as a parameter. A cell of another type is null.
    pub(super) fn array<'a>(self, cells: impl Iterator<Item = &'a Cell>) -> Parameter<'a> {
        macro_rules! array {
            ($kind:ident, $read:expr) => {
                Box::new(
                    cells
                        .map(|cell| {
                            if let Cell::$kind(value) = cell {
                                Some($read(value))
                            } else {
                                None
                            }
                        })
                        .collect::<Vec<_>>(),
                )
            };
        }
        match self {
            Self::Bool => array!(Bool, |it: &'a bool| *it),
            Self::Bytes => array!(Bytes, |it: &'a Vec<u8>| it.as_slice()),
            Self::Id => array!(Id, |it: &'a SqlId| *it),
            Self::Ip => array!(Ip, |it: &'a IpAddr| *it),
            Self::Number => array!(Number, |it: &'a i64| *it),
            Self::Text => array!(Text, |it: &'a String| it.as_str()),
            Self::Time => array!(Time, |it: &'a SqlTime| *it),
        }
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Vec<u8>> for Cell {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

impl From<&[u8; 16]> for Cell {
    fn from(value: &[u8; 16]) -> Self {
        Self::Id(SqlId(*value))
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Number(value.cast_signed())
    }
}

impl From<IpAddr> for Cell {
    fn from(value: IpAddr) -> Self {
        Self::Ip(value.to_canonical())
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<u16> for Cell {
    fn from(value: u16) -> Self {
        Self::Number(value.into())
    }
}

impl From<u8> for Cell {
    fn from(value: u8) -> Self {
        Self::Number(value.into())
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Timestamp> for Cell {
    fn from(value: Timestamp) -> Self {
        Self::Time(SqlTime(value))
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
