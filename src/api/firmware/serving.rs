//! Which handler gives devices the image of a campaign? Nobody needs a token for it: the path has a
//! part that only the devices of the campaign are told.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::SizedStream;
use actix_web::http::header::{
    ACCEPT_RANGES, CONTENT_RANGE, ETAG, HeaderMap, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use actix_web::http::{StatusCode, header};
use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse};
use futures_core::Stream;

use actors::image_files::ImageFiles;
use engine::firmware::image_key::ImageKey;
use engine::ids::{CampaignId, ImageId};

use super::hex;
use crate::api::Api;
use crate::api::error::ApiError;
use crate::api::segment::{PathSegment, Segment};

/// The bytes that are read at a time.
const PIECE_BYTES: usize = 64 * 1_024;

impl Segment for ImageKey {
    const NAME: &'static str = "key";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

/// GET: the image of a campaign that has not ended, or a part of it.
pub(in crate::api) async fn send(
    request: HttpRequest,
    PathSegment(id): PathSegment<CampaignId>,
    PathSegment(key): PathSegment<ImageKey>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let offered = api.store.offered_image(id).await?;
    let place = offered.as_ref().and_then(|offered| offered.place_of(key));
    let offered = offered.zip(place);
    let (offered, place) = offered.ok_or_else(|| ApiError::unknown("image"))?;
    let image = offered.image;
    let etag = format!("\"{}\"", hex(&image.sha256));
    let headers = request.headers();
    let mut response = HttpResponse::Ok();
    response
        .insert_header((ETAG, etag.clone()))
        .insert_header((ACCEPT_RANGES, "bytes"))
        .content_type("application/octet-stream");
    if text_of(headers, &IF_NONE_MATCH).is_some_and(|tags| names(tags, &etag)) {
        return Ok(response.status(StatusCode::NOT_MODIFIED).finish());
    }
    let is_same = text_of(headers, &IF_RANGE).is_none_or(|tag| tag == etag);
    let asked = text_of(headers, &RANGE).filter(|_| is_same);
    let part = match asked.map(|asked| part_of(asked, image.bytes)) {
        None | Some(Part::Whole) => 0..image.bytes,
        Some(Part::Of(part)) => {
            let last = part.end.saturating_sub(1);
            let range = format!("bytes {}-{last}/{}", part.start, image.bytes);
            response
                .status(StatusCode::PARTIAL_CONTENT)
                .insert_header((CONTENT_RANGE, range));
            part
        }
        Some(Part::Beyond) => return Err(ApiError::range_not_satisfiable(image.bytes)),
    };
    let length = part.end - part.start;
    let body = ImagePieces {
        files: api.images.files.clone(),
        image: image.id,
        device: (id, place),
        left: part,
        reading: None,
    };
    Ok(response.body(SizedStream::new(length, body)))
}

/// What a Range asks for (RFC 9110 section 14.2).
#[derive(Debug, Eq, PartialEq)]
enum Part {
    /// Something that is not supported: the whole is sent.
    Whole,
    /// These bytes.
    Of(Range<u64>),
    /// Bytes behind the end.
    Beyond,
}

fn part_of(asked: &str, length: u64) -> Part {
    let ends = asked.trim().strip_prefix("bytes=");
    let Some((first, last)) = ends.and_then(|ends| ends.split_once('-')) else {
        return Part::Whole;
    };
    let number = |text: &str| text.trim().parse::<u64>();
    let part = match (number(first), last.trim(), number(last)) {
        (Ok(first), "", _) => first..length,
        (Ok(first), _, Ok(last)) if last >= first => first..last.saturating_add(1).min(length),
        (Err(_), _, Ok(last)) if first.trim().is_empty() => length.saturating_sub(last)..length,
        (Ok(_) | Err(_), ..) => return Part::Whole,
    };
    match part.start < part.end {
        true => Part::Of(part),
        false => Part::Beyond,
    }
}

/// Whether a list of entity tags has one.
fn names(tags: &str, etag: &str) -> bool {
    let mut tags = tags.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

fn text_of<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// The pieces of an image, each read when the device takes it.
struct ImagePieces {
    files: ImageFiles,
    image: ImageId,
    /// The campaign of the device, and its place there.
    device: (CampaignId, u32),
    left: Range<u64>,
    reading: Option<PieceRead>,
}

type PieceRead = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>>>>;

impl Stream for ImagePieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None if self.left.is_empty() => return Poll::Ready(None),
            None => {
                let (files, image, from) = (self.files.clone(), self.image, self.left.start);
                let left = usize::try_from(self.left.end - from).unwrap_or(usize::MAX);
                Box::pin(async move { files.read(image, from, left.min(PIECE_BYTES)).await })
            }
        };
        match reading.as_mut().poll(cx) {
            Poll::Pending => {
                self.reading = Some(reading);
                Poll::Pending
            }
            Poll::Ready(Ok(piece)) if piece.is_empty() => {
                let why = io::Error::new(io::ErrorKind::UnexpectedEof, "the image is too short");
                Poll::Ready(Some(Err(why)))
            }
            Poll::Ready(Ok(piece)) => {
                self.left.start += piece.len() as u64;
                let (campaign, place) = self.device;
                let given = self.left.start;
                self.files.progress().note(campaign, place, given);
                Poll::Ready(Some(Ok(piece.into())))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_part_of_the_image() {
        for (asked, part) in [
            ("bytes=0-3", Part::Of(0..4)),
            ("bytes=4-", Part::Of(4..10)),
            ("bytes=-3", Part::Of(7..10)),
            ("bytes=-30", Part::Of(0..10)),
            ("bytes=8-30", Part::Of(8..10)),
            ("bytes=10-", Part::Beyond),
            ("bytes=-0", Part::Beyond),
            ("bytes=3-2", Part::Whole),
            ("bytes=0-1,4-5", Part::Whole),
            ("bytes=-", Part::Whole),
            ("lines=1-2", Part::Whole),
        ] {
            assert_eq!(part_of(asked, 10), part, "{asked}");
        }
    }

    #[test]
    fn an_entity_tag_is_found_in_a_list() {
        assert!(names("\"a\", W/\"b\"", "\"b\""));
        assert!(names("*", "\"b\""));
        assert!(!names("\"a\"", "\"b\""));
    }
}
