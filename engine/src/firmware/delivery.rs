//! How does a device get an image: does it download the image, and from where, or is it sent the
//! image? (LwM2M Core 1.1 appendix E.6, resources 8 and 9)

use crate::firmware::image_key::ImageKey;
use crate::firmware::update::{DeliveryMethod, FirmwareUpdate, UpdateImage};
use crate::ids::CampaignId;

/// Where devices reach this service to download images, over each protocol; none if that is not
/// known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DownloadUris {
    /// Over HTTP or HTTPS: scheme, host and port.
    pub http: Option<Box<str>>,
    /// Over CoAP: scheme, host and port.
    pub coap: Option<Box<str>>,
    /// Over CoAP with DTLS: scheme, host and port.
    pub coaps: Option<Box<str>>,
}

/// How a device gets an image.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ImageDelivery {
    /// It is sent the image.
    Push,
    /// It downloads the image from this URI.
    Pull(Box<str>),
}

/// How a device can get images.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeliverySupport {
    /// `/5/0/9`: 0 pull, 1 push, 2 both.
    pub methods: Option<i64>,
    /// `/5/0/8`: the protocols over which it downloads; empty if it does not say.
    pub protocols: Vec<i64>,
    /// Whether it uses DTLS with this service, and so has keys for a download over CoAPs.
    pub has_dtls: bool,
}

impl DownloadUris {
    /// Whether devices reach this service over any protocol.
    pub fn is_any(&self) -> bool {
        self.http.is_some() || self.coap.is_some() || self.coaps.is_some()
    }

    /// The URI of an image for a device: over HTTP rather than CoAP, which needs a round trip for
    /// each block, and over DTLS rather than without.
    fn of(
        &self,
        (campaign, key): (CampaignId, ImageKey),
        device: &DeliverySupport,
    ) -> Option<Box<str>> {
        let coaps = self.coaps.as_ref().filter(|_| device.has_dtls);
        let all = [self.http.as_ref(), coaps, self.coap.as_ref()];
        let mut all = all.into_iter().flatten();
        let origin = all.find(|origin| device.has_protocol_of(origin))?;
        Some(format!("{origin}/firmware/{campaign}/{key}").into())
    }
}

impl DeliverySupport {
    /// How the device gets the image of its update, or why it cannot.
    pub fn delivery_of(
        &self,
        update: &FirmwareUpdate,
        uris: &DownloadUris,
    ) -> Result<ImageDelivery, String> {
        let (pulls, pushes) = (self.methods != Some(1), self.methods != Some(0));
        let push_only = "the device takes images by push only (/5/0/9)";
        let pull_only = "the device takes images by pull only (/5/0/9)";
        let uri = match &update.image {
            UpdateImage::Elsewhere(_) if !pulls => {
                return Err(format!("{push_only}, and the image is on another server"));
            }
            UpdateImage::Elsewhere(uri) if self.has_protocol_of(uri) => {
                return Ok(ImageDelivery::Pull(uri.clone()));
            }
            UpdateImage::Elsewhere(uri) => {
                let scheme = scheme_of(uri);
                return Err(format!(
                    "the device does not download over {scheme} (/5/0/8)"
                ));
            }
            UpdateImage::Stored { key, .. } => {
                let uri = uris.of((update.campaign, *key), self);
                uri.filter(|_| pulls)
            }
        };
        // A device that does not say its protocols may have none of ours.
        let says = self.methods != Some(2) || !self.protocols.is_empty();
        match (update.method, uri) {
            (DeliveryMethod::Push, _) if pushes => Ok(ImageDelivery::Push),
            (DeliveryMethod::Push, _) => Err(pull_only.to_owned()),
            (DeliveryMethod::Pull, _) if !pulls => Err(push_only.to_owned()),
            (DeliveryMethod::Pull, Some(uri)) => Ok(ImageDelivery::Pull(uri)),
            (DeliveryMethod::Auto, Some(uri)) if says => Ok(ImageDelivery::Pull(uri)),
            (DeliveryMethod::Auto, _) if pushes => Ok(ImageDelivery::Push),
            (DeliveryMethod::Auto | DeliveryMethod::Pull, _) => Err(
                "the device downloads over no protocol by which it can reach this service (/5/0/8)"
                    .to_owned(),
            ),
        }
    }

    fn has_protocol_of(&self, uri: &str) -> bool {
        let number = match scheme_of(uri) {
            "coap" => 0,
            "coaps" => 1,
            "http" => 2,
            "https" => 3,
            _ => return true,
        };
        self.protocols.is_empty() || self.protocols.contains(&number)
    }
}

fn scheme_of(uri: &str) -> &str {
    uri.split_once("://").map_or("", |(scheme, _)| scheme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firmware::update::UpdateStep;
    use crate::ids::ImageId;

    const NO_PROTOCOL: &str =
        "the device downloads over no protocol by which it can reach this service (/5/0/8)";

    #[test]
    fn a_device_is_given_the_image_as_it_can_take_it() {
        let (auto, pull, push) = (
            DeliveryMethod::Auto,
            DeliveryMethod::Pull,
            DeliveryMethod::Push,
        );
        for (wanted, methods, protocols, has_dtls, expected) in [
            (auto, Some(0), &[][..], false, "http://h"),
            (auto, Some(0), &[0, 1], false, "coap://c"),
            (auto, Some(0), &[0, 1], true, "coaps://s"),
            (auto, Some(0), &[0, 1, 2], true, "http://h"),
            (auto, Some(0), &[3], true, NO_PROTOCOL),
            (auto, Some(0), &[1], false, NO_PROTOCOL),
            (auto, Some(1), &[2], false, "push"),
            (auto, Some(2), &[2], false, "http://h"),
            (auto, Some(2), &[3], false, "push"),
            (auto, Some(2), &[], false, "push"),
            (auto, None, &[], false, "http://h"),
            (pull, Some(2), &[], false, "http://h"),
            (
                pull,
                Some(1),
                &[2],
                false,
                "the device takes images by push only (/5/0/9)",
            ),
            (pull, Some(2), &[3], false, NO_PROTOCOL),
            (push, Some(2), &[2], false, "push"),
            (push, None, &[], false, "push"),
            (
                push,
                Some(0),
                &[],
                false,
                "the device takes images by pull only (/5/0/9)",
            ),
        ] {
            let device = DeliverySupport {
                methods,
                protocols: protocols.to_vec(),
                has_dtls,
            };
            let delivery = device.delivery_of(&update(wanted), &uris());
            let path = format!("/firmware/{}/{}", campaign(), key());
            let found = match delivery {
                Ok(ImageDelivery::Push) => "push".to_owned(),
                Ok(ImageDelivery::Pull(uri)) => uri.strip_suffix(&path).unwrap().to_owned(),
                Err(why) => why,
            };
            assert_eq!(found, expected, "{wanted:?} {device:?}");
        }
    }

    #[test]
    fn without_a_known_address_an_image_is_pushed() {
        let uris = DownloadUris::default();
        let device = DeliverySupport::default();
        let delivery = device.delivery_of(&update(DeliveryMethod::Auto), &uris);
        assert_eq!(delivery, Ok(ImageDelivery::Push));
    }

    fn update(method: DeliveryMethod) -> FirmwareUpdate {
        FirmwareUpdate {
            campaign: campaign(),
            place: 3,
            image: UpdateImage::Stored {
                image: ImageId::from_bytes([4; 16]),
                bytes: 900,
                key: key(),
            },
            method,
            retries_left: 0,
            step: UpdateStep::Offers,
            version_before: None,
        }
    }

    fn campaign() -> CampaignId {
        CampaignId::from_bytes([5; 16])
    }

    fn key() -> ImageKey {
        ImageKey::of(&[6; 16], 3)
    }

    fn uris() -> DownloadUris {
        DownloadUris {
            http: Some("http://h".into()),
            coap: Some("coap://c".into()),
            coaps: Some("coaps://s".into()),
        }
    }
}
