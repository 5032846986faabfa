//! What is answered to a device that downloads an image over CoAP? Each block by itself, from the
//! image alone (RFC 7959 section 2.4): the device may go on at any block, after any time.

use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::serving;

use crate::datagram::Datagram;
use crate::diagnostic::{self, Recipient};
use crate::firmware::image_key::ImageKey;
use crate::firmware::{FirmwareImage, ImageRange};
use crate::ids::{CampaignId, DeviceKey};

/// The bytes of an ETag (RFC 7252 section 5.10.6): enough to distinguish images.
const ETAG_BYTES: usize = 8;

/// The image of a campaign that has not ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OfferedImage {
    /// The image.
    pub image: FirmwareImage,
    /// Makes the keys of its devices.
    pub secret: [u8; 16],
}

/// A request for a block of an image.
#[derive(Clone, Debug)]
pub struct ImageRequest {
    /// The campaign.
    pub campaign: CampaignId,
    /// The key in the path.
    pub key: ImageKey,
    /// The device that proved its keys; over plain CoAP the key in the path is enough.
    pub device: Option<DeviceKey>,
    /// The request.
    pub datagram: Datagram,
}

/// The block that was requested.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImageBlock {
    /// The image.
    pub image: FirmwareImage,
    /// The bytes of the block; empty if the image has no such block.
    pub bytes: Vec<u8>,
}

impl ImageRequest {
    /// The part of the image that the response has; none if the image has no such block.
    pub fn part_of(&self, image: &FirmwareImage) -> Option<ImageRange> {
        let length = usize::try_from(image.bytes).ok()?;
        let part = serving::part_of(&self.datagram.message, BlockSize::MAX, length)?;
        Some(ImageRange {
            image: image.id,
            from: part.start as u64,
            bytes: part.len(),
        })
    }

    /// The response. A Non-confirmable request gets none: it would need a message id, and those
    /// belong to the device.
    pub(crate) fn response(&self, block: &ImageBlock) -> Option<Message> {
        let request = &self.datagram.message;
        if request.kind != MessageKind::Confirmable {
            return None;
        }
        let response = |code| Message::response_to(request, code, MessageId(0));
        let accepted = request.accept().unwrap_or(ContentFormat::OCTET_STREAM);
        if accepted != ContentFormat::OCTET_STREAM {
            let text = "an image has the format 42";
            let to = (request, Recipient::Stranger);
            return Some(diagnostic::with_text(
                response(Code::NOT_ACCEPTABLE),
                text,
                to,
            ));
        }
        let etag = block.image.sha256.get(..ETAG_BYTES).unwrap_or_default();
        let response = response(Code::CONTENT)
            .with_etag(etag)
            .with_content_format(ContentFormat::OCTET_STREAM);
        let length = usize::try_from(block.image.bytes).unwrap_or(usize::MAX);
        let part = (block.bytes.as_slice(), length);
        Some(serving::cut_part(response, part, request, BlockSize::MAX))
    }
}

impl OfferedImage {
    /// The place of the device that has this key, if it is one of this campaign.
    pub fn place_of(&self, key: ImageKey) -> Option<u32> {
        key.place_by(&self.secret)
    }
}

#[cfg(test)]
mod tests {
    use protocol::coap::block::{Block, More};
    use protocol::coap::token::Token;

    use super::*;
    use crate::ids::{CustomerId, ImageId};
    use crate::moment::Timestamp;
    use crate::peer::Peer;

    #[test]
    fn each_block_is_answered_by_itself() {
        for (number, size, from, bytes, more) in [
            (0, 1_024, 0, 1_024, true),
            (2, 1_024, 2_048, 452, false),
            (39, 64, 2_496, 4, false),
        ] {
            let size = BlockSize::of_bytes(size).unwrap();
            let wanted = get().with_block2(Block::new(number, More::No, size));
            let request = request(wanted);
            let part = request.part_of(&image()).unwrap();
            assert_eq!((part.from, part.bytes), (from, bytes));
            let response = response(&request);
            let block = response.block2().unwrap();
            assert_eq!((block.number(), block.has_more()), (number, more));
            assert_eq!(response.payload.len(), bytes);
            assert_eq!(response.etag(), Some(&[9; 8][..]));
            let first = (from == 0).then_some(2_500);
            assert_eq!(response.size2(), first);
        }
    }

    #[test]
    fn a_request_without_a_block_gets_the_first() {
        let response = response(&request(get()));
        assert_eq!(response.code, Code::CONTENT);
        let block = response.block2().unwrap();
        assert_eq!((block.number(), block.has_more()), (0, true));
        assert_eq!(response.content_format(), Some(ContentFormat::OCTET_STREAM));
    }

    #[test]
    fn a_block_behind_the_end_and_another_format_are_refused() {
        let behind = Block::new(3, More::No, BlockSize::MAX);
        let beyond = request(get().with_block2(behind));
        assert_eq!(beyond.part_of(&image()), None);
        assert_eq!(response(&beyond).code, Code::BAD_REQUEST);
        let as_text = request(get().with_accept(ContentFormat::TEXT));
        assert_eq!(response(&as_text).code, Code::NOT_ACCEPTABLE);
    }

    fn response(request: &ImageRequest) -> Message {
        let part = request.part_of(&image());
        let block = ImageBlock {
            bytes: vec![7; part.map_or(0, |part| part.bytes)],
            image: image(),
        };
        request.response(&block).unwrap()
    }

    fn get() -> Message {
        let (kind, token) = (MessageKind::Confirmable, Token::from_u64(1));
        Message::request(kind, Code::GET, MessageId(7), token)
    }

    fn request(message: Message) -> ImageRequest {
        ImageRequest {
            campaign: CampaignId::from_bytes([1; 16]),
            key: ImageKey::of(&[2; 16], 0),
            device: None,
            datagram: Datagram::new(1, Peer::plain("192.0.2.1:5683".parse().unwrap()), message),
        }
    }

    fn image() -> FirmwareImage {
        FirmwareImage {
            id: ImageId::from_bytes([3; 16]),
            customer: CustomerId::parse("acme").unwrap(),
            name: None,
            version: None,
            created_at: Timestamp::default(),
            bytes: 2_500,
            sha256: [9; 32],
        }
    }
}
