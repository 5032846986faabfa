//! How is the result of an import reported? Counts and refused lines, while it runs or at the end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::web::Bytes;
use futures_core::Stream;
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::batches::{LineEffect, SettledLine};
use crate::api::error::{ApiError, ErrorBody, ErrorDetail};

/// Refused lines listed in a report at the end: it is held in memory until then. Further ones are
/// only counted.
pub(super) const REFUSALS_MAX: usize = 10_000;

/// The maximum bytes of those lines: the name of an unknown property can be as long as a line.
const REFUSAL_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Faults reported per line: more than a line has fields.
const FAULTS_MAX: usize = 16;

/// Parts of the response that may wait for the caller to read them.
const PARTS_MAX: usize = 4;

/// A caller that reads nothing of the response for this long counts as disconnected.
const READ_PATIENCE: Duration = Duration::from_secs(30);

/// The counts of the settled lines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineCounts {
    /// Settled lines that have a record.
    pub(super) lines: u64,
    /// Created devices.
    pub(super) created: u64,
    /// Lines whose device existed with the same values.
    pub(super) unchanged: u64,
    /// Refused lines.
    pub(super) refused: u64,
    /// All lines up to and including this one are settled, and their devices are durable.
    pub(super) through: u64,
}

/// A refused line with its faults.
#[derive(Debug, Serialize)]
struct RefusalBody {
    line: u64,
    errors: Vec<ErrorDetail>,
}

/// When the caller receives the report.
pub(super) enum ReportMode {
    /// At the end, complete.
    AtTheEnd(RefusedLines),
    /// Line by line while the import runs.
    AsItGoes(Sender<Bytes>),
}

/// The refused lines of a report at the end.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefusedLines {
    refusals: Vec<RefusalBody>,
    refusals_omitted: u64,
    #[serde(skip)]
    bytes: usize,
}

/// The complete report at the end.
#[derive(Serialize)]
pub(super) struct SummaryBody {
    #[serde(flatten)]
    tally: LineCounts,
    #[serde(flatten)]
    refused_lines: RefusedLines,
}

/// A line of a report that is sent while the import runs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum LineBody<'a> {
    Refusal(&'a RefusalBody),
    Progress(LineCounts),
    #[serde(untagged)]
    End(EndBody<'a>),
}

#[derive(Serialize)]
struct EndBody<'a> {
    summary: LineCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody<'a>>,
}

/// A report that is sent while the import runs, as an HTTP body.
pub(super) struct ReportStream(Receiver<Bytes>);

impl LineCounts {
    /// Counts settled lines.
    pub(super) fn count(&mut self, settled: &[SettledLine]) {
        for line in settled {
            self.lines += 1;
            match line.outcome {
                Ok(LineEffect::Created) => self.created += 1,
                Ok(LineEffect::Unchanged) => self.unchanged += 1,
                Err(_) => self.refused += 1,
            }
        }
    }
}

impl ReportMode {
    /// A report at the end.
    pub(super) fn at_the_end() -> Self {
        Self::AtTheEnd(RefusedLines::default())
    }

    /// A report that is sent while the import runs, and its HTTP body.
    pub(super) fn as_it_goes() -> (Self, ReportStream) {
        let (sender, receiver) = channel(PARTS_MAX);
        (Self::AsItGoes(sender), ReportStream(receiver))
    }

    /// The complete report with these counts.
    pub(super) fn into_summary(self, tally: LineCounts) -> SummaryBody {
        let refused_lines = match self {
            Self::AtTheEnd(refused_lines) => refused_lines,
            Self::AsItGoes(_) => RefusedLines::default(),
        };
        SummaryBody {
            tally,
            refused_lines,
        }
    }

    /// Reports settled lines.
    pub(super) async fn add(
        &mut self,
        settled: Vec<SettledLine>,
        tally: LineCounts,
    ) -> Result<(), ApiError> {
        let refusals = settled.into_iter().filter_map(RefusalBody::of);
        match self {
            Self::AtTheEnd(refused_lines) => {
                refusals.for_each(|refusal| refused_lines.keep(refusal));
                Ok(())
            }
            Self::AsItGoes(sender) => {
                let mut text = Vec::new();
                refusals.for_each(|refusal| append(&mut text, &LineBody::Refusal(&refusal)));
                append(&mut text, &LineBody::Progress(tally));
                send(sender, text).await
            }
        }
    }

    /// Reports the end of the import, if the report is sent while it runs.
    pub(super) async fn end(
        &self,
        summary: LineCounts,
        error: Option<ErrorBody<'_>>,
    ) -> Result<(), ApiError> {
        match self {
            Self::AtTheEnd(_) => Ok(()),
            Self::AsItGoes(sender) => {
                let mut text = Vec::new();
                append(&mut text, &LineBody::End(EndBody { summary, error }));
                send(sender, text).await
            }
        }
    }
}

impl RefusedLines {
    fn keep(&mut self, refusal: RefusalBody) {
        let bytes = refusal.bytes();
        let is_full = self.refusals.len() >= REFUSALS_MAX || self.bytes + bytes > REFUSAL_BYTES_MAX;
        // The listed refusals are the first ones, without a gap.
        if is_full || self.refusals_omitted > 0 {
            self.refusals_omitted += 1;
            return;
        }
        self.bytes += bytes;
        self.refusals.push(refusal);
    }
}

impl RefusalBody {
    fn of(settled: SettledLine) -> Option<Self> {
        let mut errors = settled.outcome.err()?;
        errors.truncate(FAULTS_MAX);
        Some(Self {
            line: settled.line,
            errors,
        })
    }

    fn bytes(&self) -> usize {
        let of_fault = |fault: &ErrorDetail| {
            let field = fault.field.as_ref().map_or(0, String::len);
            size_of::<ErrorDetail>() + fault.message.len() + field
        };
        size_of::<Self>() + self.errors.iter().map(of_fault).sum::<usize>()
    }
}

impl Stream for ReportStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|part| part.map(Ok))
    }
}

fn append(text: &mut Vec<u8>, line: &LineBody<'_>) {
    serde_json::to_writer(&mut *text, line).expect("texts and numbers can be written");
    text.push(b'\n');
}

async fn send(sender: &Sender<Bytes>, text: Vec<u8>) -> Result<(), ApiError> {
    let sent = tokio::time::timeout(READ_PATIENCE, sender.send(text.into())).await;
    match sent {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(ApiError::malformed("the caller does not read the response")),
    }
}

#[cfg(test)]
mod tests;
