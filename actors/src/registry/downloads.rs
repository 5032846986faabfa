//! Which block of an image does a device get over CoAP? Reads the image of its campaign, and the
//! block.

use std::rc::Rc;

use engine::arbiter::input::StoreUnavailable;
use engine::firmware::download::{ImageBlock, ImageRequest};
use store::Unavailable;
use tracing::warn;

use super::context::ArbiterContext;

/// The block that a request is for; none if the campaign has ended, or the key is not one of it.
pub(super) async fn block_of(
    context: Rc<ArbiterContext>,
    request: &ImageRequest,
) -> Result<Option<ImageBlock>, StoreUnavailable> {
    let offered = context.store.offered_image(request.campaign).await;
    let Some(offered) = offered.map_err(|Unavailable| StoreUnavailable)? else {
        return Ok(None);
    };
    let Some(place) = offered.place_of(request.key) else {
        return Ok(None);
    };
    let bytes = match request.part_of(&offered.image) {
        None => Vec::new(),
        Some(part) => {
            let read = context.images.read(part.image, part.from, part.bytes).await;
            let read = read.map_err(|error| {
                warn!(image = %part.image, %error, "an image could not be read");
                StoreUnavailable
            })?;
            let end = part.from + read.len() as u64;
            context.images.progress().note(request.campaign, place, end);
            read
        }
    };
    let image = offered.image;
    Ok(Some(ImageBlock { image, bytes }))
}
