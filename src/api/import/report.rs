//! What is a caller told of its import? Counts and refused lines, as it goes or at the end.

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

/// Refused lines that an answer at the end lists: it is held in memory until then. Of the others
/// it says how many they are.
pub(super) const REFUSALS_MAX: usize = 10_000;

/// The bytes of those lines: names of unknown properties are as long as a line.
const REFUSAL_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Faults told of one line: more than a line has fields.
const FAULTS_MAX: usize = 16;

/// Parts of an answer that may wait for the caller to read them.
const PARTS_MAX: usize = 4;

/// A caller that does not read its answer for so long is gone.
const READ_PATIENCE: Duration = Duration::from_secs(30);

/// What came of the lines so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineCounts {
    /// Lines that said something and are settled.
    pub(super) lines: u64,
    /// Devices that were made.
    pub(super) created: u64,
    /// Lines whose device was there, just as they say.
    pub(super) unchanged: u64,
    /// Lines that did nothing.
    pub(super) refused: u64,
    /// Up to and with this line everything is settled, and what was made is durable.
    pub(super) through: u64,
}

/// A line that did nothing, and why.
#[derive(Debug, Serialize)]
struct RefusalBody {
    line: u64,
    errors: Vec<ErrorDetail>,
}

/// How a caller is told.
pub(super) enum ReportMode {
    /// All at the end.
    AtTheEnd(RefusedLines),
    /// Line by line while the import runs.
    AsItGoes(Sender<Bytes>),
}

/// Refused lines to be told at the end.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefusedLines {
    refusals: Vec<RefusalBody>,
    refusals_omitted: u64,
    #[serde(skip)]
    bytes: usize,
}

/// The whole answer at the end.
#[derive(Serialize)]
pub(super) struct SummaryBody {
    #[serde(flatten)]
    tally: LineCounts,
    #[serde(flatten)]
    kept: RefusedLines,
}

/// A line of an answer that is told as the import goes.
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

/// An answer that is told as the import goes, as a body of HTTP.
pub(super) struct ReportStream(Receiver<Bytes>);

impl LineCounts {
    /// Counts lines in.
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

    /// A report as it goes, and the body that carries it.
    pub(super) fn as_it_goes() -> (Self, ReportStream) {
        let (sender, receiver) = channel(PARTS_MAX);
        (Self::AsItGoes(sender), ReportStream(receiver))
    }

    /// The whole answer, with these counts.
    pub(super) fn into_summary(self, tally: LineCounts) -> SummaryBody {
        let kept = match self {
            Self::AtTheEnd(kept) => kept,
            Self::AsItGoes(_) => RefusedLines::default(),
        };
        SummaryBody { tally, kept }
    }

    /// Tells what became of lines.
    pub(super) async fn tell(
        &mut self,
        settled: Vec<SettledLine>,
        tally: LineCounts,
    ) -> Result<(), ApiError> {
        let refusals = settled.into_iter().filter_map(RefusalBody::of);
        match self {
            Self::AtTheEnd(kept) => {
                refusals.for_each(|refusal| kept.keep(refusal));
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

    /// Tells how the import ended, where it was told as it went.
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
        // The refusals listed are the first, without a gap.
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
