//! POST `/devices/import`: imports devices by the million from a stream, batch by batch, with a
//! report line by line.
//!
//! ```text
//!  body -> upload (lines, records) -> batches (decide, commit) -> report (counts, refusals)
//! ```
//!
//! The body is read no faster than lines are settled, so an import of any length takes the same
//! memory.

mod batches;
pub(super) mod described;
mod lines;
mod records;
mod report;
mod running;
mod upload;

use std::collections::HashSet;

use actix_web::http::header::{ACCEPT, HeaderMap};
use actix_web::{HttpRequest, HttpResponse, web};
use tracing::{Instrument, debug, error, info};

use engine::change::UniqueName;
use engine::ids::{CustomerId, TraceId};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{essence, expect_plain, media_type};
use super::call::Call;
use super::devices::{drafted, new_device};
use super::error::ApiError;
use batches::{BATCH_LINES, Batches, DraftLine, SettledLine};
use records::{Format, Record};
use report::{LineCounts, ReportMode};
use running::ImportSlot;
use upload::Upload;

pub(super) use running::RunningImports;

/// The import logs its progress to the operator's log after this many lines.
const LOGGED_LINES: u64 = 100_000;

/// POST: creates devices, one per line.
pub(super) async fn create(
    caller: AuthenticatedCaller,
    call: Call,
    request: HttpRequest,
    payload: web::Payload,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let admitted = admit(&api, &caller.customer, request.headers());
    let mut upload = Upload::new(api.clone(), payload);
    let opened = match &admitted {
        Ok((format, _)) => upload.open(*format).await,
        Err(failure) => Err(failure.clone()),
    };
    let (_, place) = match opened.and(admitted) {
        Ok(admitted) => admitted,
        Err(failure) => {
            upload.discard().await;
            return Err(failure);
        }
    };
    let batches = Batches::new(api.clone(), caller.customer.clone());
    let import = Import {
        lines_left: u64::from(api.import_lines_max),
        api,
        caller,
        upload,
        batches,
        entries: Vec::with_capacity(BATCH_LINES),
        tally: LineCounts::default(),
        has_gap: false,
        report: ReportMode::at_the_end(),
        _place: place,
    };
    if wants_lines(request.headers()) {
        Ok(answered_as_it_goes(import, call.trace))
    } else {
        Ok(answered_at_the_end(import, call.trace).await)
    }
}

/// One import.
struct Import {
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    upload: Upload,
    batches: Batches,
    /// Lines that are not committed yet.
    entries: Vec<DraftLine>,
    lines_left: u64,
    tally: LineCounts,
    /// Whether a batch was not settled: the lines after it no longer extend `through`.
    has_gap: bool,
    report: ReportMode,
    _place: ImportSlot,
}

impl Import {
    /// Imports until the body ends or an error stops the import.
    async fn run(&mut self) -> Result<(), ApiError> {
        info!(customer = %self.caller.customer, "import started");
        let outcome = self.take_all().await;
        if outcome.is_err() {
            self.wind_up().await;
        }
        let LineCounts {
            lines,
            created,
            unchanged,
            refused,
            through,
        } = self.tally;
        let whole = outcome.is_ok();
        info!(
            customer = %self.caller.customer,
            lines, created, unchanged, refused, through, whole,
            "import ended"
        );
        outcome
    }

    async fn take_all(&mut self) -> Result<(), ApiError> {
        loop {
            while let Some(record) = self.upload.next_record()? {
                if self.lines_left == 0 {
                    self.send_all().await?;
                    return Err(self.too_many_lines(record.line));
                }
                self.take(record);
                if self.entries.len() == BATCH_LINES {
                    self.send().await?;
                }
            }
            if self.upload.is_ended() {
                return self.send_all().await;
            }
            // A slow sender does not have to fill a batch before its lines are imported.
            if self.batches.is_empty() {
                self.send().await?;
            }
            tokio::select! {
                filled = self.upload.fill() => filled?,
                () = self.batches.arrival(), if !self.batches.is_empty() => self.land().await?,
            }
        }
    }

    async fn send_all(&mut self) -> Result<(), ApiError> {
        self.send().await?;
        while !self.batches.is_empty() {
            self.land().await?;
        }
        Ok(())
    }

    fn take(&mut self, record: Record) {
        self.lines_left -= 1;
        let draft = record
            .fields
            .and_then(new_device)
            .and_then(|new| drafted(&self.api, &self.caller.customer, new));
        self.entries.push(DraftLine {
            line: record.line,
            draft: draft.map_err(ApiError::into_faults),
        });
    }

    /// Commits the collected lines as a batch.
    async fn send(&mut self) -> Result<(), ApiError> {
        if self.entries.is_empty() {
            return Ok(());
        }
        if self.api.readiness.is_draining() {
            return Err(ApiError::not_ready());
        }
        let entries = std::mem::replace(&mut self.entries, Vec::with_capacity(BATCH_LINES));
        let profiles = entries.iter().filter_map(DraftLine::profile);
        let names: HashSet<UniqueName> = profiles.flat_map(UniqueName::all_of).collect();
        while self.batches.must_wait(&names) {
            self.land().await?;
        }
        self.expect_caller().await?;
        self.batches.send(entries, names).await
    }

    /// A revoked caller creates no more devices.
    async fn expect_caller(&self) -> Result<(), ApiError> {
        match self.caller.is_revoked(&self.api).await? {
            false => Ok(()),
            true => Err(ApiError::token_invalid()),
        }
    }

    async fn land(&mut self) -> Result<(), ApiError> {
        let landed = self.batches.land().await;
        self.has_gap |= landed.is_err();
        self.record(landed?).await
    }

    /// Ends an import that stops: waits for the batches in flight, and discards the rest of the
    /// body.
    async fn wind_up(&mut self) {
        while !self.batches.is_empty() {
            let landed = self.batches.land_as_it_is().await;
            self.has_gap |= landed.is_none();
            if self.record(landed.unwrap_or_default()).await.is_err() {
                debug!(customer = %self.caller.customer, "the caller does not read the response");
            }
        }
        self.upload.discard().await;
    }

    async fn record(&mut self, settled: Vec<SettledLine>) -> Result<(), ApiError> {
        let before = self.tally.lines / LOGGED_LINES;
        self.tally.count(&settled);
        if let Some(last) = settled.last().filter(|_| !self.has_gap) {
            self.tally.through = last.line;
        }
        if self.tally.lines / LOGGED_LINES > before {
            let LineCounts { lines, created, .. } = self.tally;
            info!(customer = %self.caller.customer, lines, created, "import in progress");
        }
        self.report.add(settled, self.tally).await
    }

    fn too_many_lines(&self, line: u64) -> ApiError {
        let max = self.api.import_lines_max;
        ApiError::too_many_lines(format!(
            "an import has at most {max} lines; line {line} and all later lines are not imported"
        ))
    }
}

/// The format of the lines and the slot of the import, if the import may start.
fn admit(
    api: &Api,
    customer: &CustomerId,
    headers: &HeaderMap,
) -> Result<(Format, ImportSlot), ApiError> {
    expect_plain(headers)?;
    let format = Format::of(&media_type(headers));
    let wanted = "application/x-ndjson or text/csv";
    let format = format.ok_or_else(|| ApiError::unsupported_media(wanted))?;
    Ok((format, api.imports.enter(customer)?))
}

/// Whether the caller wants the report line by line while the import runs.
fn wants_lines(headers: &HeaderMap) -> bool {
    let accepted = headers
        .get_all(ACCEPT)
        .filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|media_type| Format::of(&essence(media_type)) == Some(Format::Ndjson))
}

/// Runs the import, then answers with the complete report.
async fn answered_at_the_end(mut import: Import, trace: TraceId) -> HttpResponse {
    let outcome = import.run().await;
    let body = import.report.into_summary(import.tally);
    match outcome {
        Ok(()) => HttpResponse::Ok().json(body),
        Err(failure) => {
            log_failure(&failure);
            failure.response_with(trace, &body)
        }
    }
}

/// Answers immediately, and reports line by line while the import runs.
fn answered_as_it_goes(mut import: Import, trace: TraceId) -> HttpResponse {
    let (report, stream) = ReportMode::as_it_goes();
    import.report = report;
    let importing = async move {
        let failure = import.run().await.err();
        if let Some(failure) = &failure {
            log_failure(failure);
        }
        let error = failure.as_ref().map(|failure| failure.body(trace));
        if import.report.end(import.tally, error).await.is_err() {
            debug!(customer = %import.caller.customer, "the caller does not read the response");
        }
    };
    actix_web::rt::spawn(importing.in_current_span());
    HttpResponse::Ok()
        .content_type("application/x-ndjson")
        .streaming(stream)
}

fn log_failure(failure: &ApiError) {
    if let Some(inner) = failure.inner() {
        error!(inner, "import stopped");
    }
}
