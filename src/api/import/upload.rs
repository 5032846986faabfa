//! How is the body of an import received? Chunk by chunk, no faster than lines are settled.

use std::time::Duration;

use actix_web::web;

use engine::moment::Timestamp;

use super::lines::Lines;
use super::records::{Format, Record, Records};
use crate::api::Api;
use crate::api::error::ApiError;
use crate::api::pace::Pace;

/// The longest duration of an import, so that a caller that sends blank lines does not keep its
/// slot. A million lines at a tenth of the usual speed take half of it.
const IMPORT_MS_MAX: i64 = 3_600_000;

/// After an import stopped, the rest of the body is read for this long, so that a caller that is
/// still sending receives the error. A stop of the service does not wait longer either.
const DISCARD_PATIENCE: Duration = Duration::from_secs(2);

/// The body of an import.
pub(super) struct Upload {
    api: web::Data<Api>,
    payload: web::Payload,
    lines: Lines,
    records: Records,
    began_at: Timestamp,
    pace: Pace,
    is_ended: bool,
}

impl Upload {
    /// The body of a new call.
    pub(super) fn new(api: web::Data<Api>, payload: web::Payload) -> Self {
        Self {
            began_at: api.clock.now(),
            pace: Pace::new(api.import_behind_max),
            api,
            payload,
            lines: Lines::default(),
            records: Records::of(Format::Ndjson),
            is_ended: false,
        }
    }

    /// Reads everything before the first record of a format.
    pub(super) async fn open(&mut self, format: Format) -> Result<(), ApiError> {
        self.records = Records::of(format);
        while !self.records.is_open() {
            match self.lines.next_whole() {
                // Before the header there are no records.
                Some(line) => drop(self.records.read(line)?),
                None if self.is_ended => return self.open_by_last_line(),
                None => self.fill().await?,
            }
        }
        Ok(())
    }

    /// The next record in the received bytes, if there is one.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, ApiError> {
        loop {
            let line = match self.lines.next_whole() {
                Some(line) => line,
                None if !self.is_ended => return Ok(None),
                None => match self.lines.last() {
                    Some(line) => line,
                    None => return self.records.end(),
                },
            };
            if let Some(record) = self.records.read(line)? {
                return Ok(Some(record));
            }
        }
    }

    /// Waits for the next chunk or the end. Cancel-safe.
    pub(super) async fn fill(&mut self) -> Result<(), ApiError> {
        if self.api.clock.now().since_ms(self.began_at) > IMPORT_MS_MAX {
            return Err(ApiError::body_too_slow());
        }
        match self.pace.next_part(&mut self.payload).await? {
            Some(piece) => self.lines.feed(piece),
            None => self.is_ended = true,
        }
        Ok(())
    }

    /// Whether the body was received completely.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Discards the rest of the body.
    pub(super) async fn discard(&mut self) {
        let passing = async {
            while !self.is_ended && self.fill().await.is_ok() {
                self.lines = Lines::default();
            }
        };
        // A caller that sends for longer is cut off.
        let _ = tokio::time::timeout(DISCARD_PATIENCE, passing).await;
    }

    fn open_by_last_line(&mut self) -> Result<(), ApiError> {
        if let Some(line) = self.lines.last() {
            self.records.read(line)?;
        }
        self.records.end().map(drop)
    }
}
