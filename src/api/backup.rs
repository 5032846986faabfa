//! Which handler sends a backup of the store?

pub(super) mod described;

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use futures_core::Stream;
use store::{BackupStream, Unavailable};
use tracing::info;

use super::Api;
use super::error::ApiError;

/// GET: everything in the store, as it is after one group of commits.
pub(super) async fn send(api: web::Data<Api>) -> Result<HttpResponse, ApiError> {
    let pieces = api.backups.backup()?;
    info!("backup started");
    Ok(HttpResponse::Ok()
        .content_type("application/octet-stream")
        .streaming(BackupBody(pieces)))
}

/// The body: an error ends the connection before the body is complete.
struct BackupBody(BackupStream);

impl Stream for BackupBody {
    type Item = Result<Bytes, Unavailable>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|piece| piece.map(Bytes::from)))
    }
}
