//! How are ids and times sent to the server and read from it?

use std::error::Error;

use engine::moment::Timestamp;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// The milliseconds from 1970 to 2000, where the server's times begin.
const EPOCH_MS: i64 = 946_684_800_000;

/// The microseconds that the server's times begin and end with; what is outside of them is
/// infinite.
const TIMES: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// Sixteen bytes, as a `uuid`: a UUID, or the key of a device.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct SqlId(pub(super) [u8; 16]);

/// An instant, as a `timestamptz`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct SqlTime(pub(super) Timestamp);

impl SqlId {
    /// The least id that was made at an instant or later (RFC 9562 section 5.7).
    pub(super) fn made_from(at: Timestamp) -> Self {
        let ms = at.as_ms().clamp(0, (1 << 48) - 1).cast_unsigned();
        let mut id = [0; 16];
        id[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
        Self(id)
    }
}

impl ToSql for SqlId {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for SqlId {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    accepts!(UUID);
}

impl SqlTime {
    /// As the server stores it: the microseconds since 2000, or an infinite time.
    pub(super) fn stored(self) -> i64 {
        let us = self
            .0
            .as_ms()
            .saturating_sub(EPOCH_MS)
            .saturating_mul(1_000);
        match us {
            before if before < TIMES.start => i64::MIN,
            after if after >= TIMES.end => i64::MAX,
            within => within,
        }
    }
}

impl ToSql for SqlTime {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.stored().to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for SqlTime {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let us = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(Timestamp::from_ms(
            us.div_euclid(1_000).saturating_add(EPOCH_MS),
        )))
    }

    accepts!(TIMESTAMPTZ);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_and_those_beyond_the_servers_are_infinite() {
        let written = |ms| {
            let mut out = BytesMut::new();
            let time = SqlTime(Timestamp::from_ms(ms));
            time.to_sql(&Type::TIMESTAMPTZ, &mut out).unwrap();
            out.to_vec()
        };
        for ms in [0, EPOCH_MS, 1_795_521_600_123, -5] {
            let read = SqlTime::from_sql(&Type::TIMESTAMPTZ, &written(ms)).unwrap();
            assert_eq!(read.0.as_ms(), ms);
        }
        assert_eq!(written(i64::MAX), i64::MAX.to_be_bytes());
        assert_eq!(written(i64::MIN), i64::MIN.to_be_bytes());
    }

    #[test]
    fn the_first_id_of_an_instant_has_its_milliseconds() {
        let SqlId(id) = SqlId::made_from(Timestamp::from_ms(0x0102_0304_0506));
        assert_eq!(id, [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(SqlId::made_from(Timestamp::from_ms(-1)), SqlId([0; 16]));
    }
}
