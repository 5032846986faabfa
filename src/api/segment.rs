//! What does the path address? One reader per kind of segment; what cannot be a name of the kind
//! names nothing, so it is 404 and not 400.

use std::collections::HashMap;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};

use engine::action::Protocol;
use engine::ids::{ActionId, ClientId, CustomerId, DeviceId};
use engine::setting::SettingName;

use super::error::Failure;
use super::words::Word;

/// What a segment of the path names.
pub(super) struct At<T>(pub(super) T);

/// Something a segment of the path can name.
pub(super) trait Segment: Sized {
    /// What the pattern of the path calls the segment, and what is missing where it names nothing.
    const NAME: &'static str;

    /// What the text names, if it can name anything.
    fn read(text: &str) -> Option<Self>;
}

impl<T: Segment> FromRequest for At<T> {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let segments = web::Path::<HashMap<String, String>>::from_request(request, payload);
        let segments = segments.into_inner().ok();
        let text = segments.as_ref().and_then(|segments| segments.get(T::NAME));
        let named = text.and_then(|text| T::read(text)).map(Self);
        ready(named.ok_or_else(|| Failure::unknown(T::NAME)))
    }
}

impl Segment for ActionId {
    const NAME: &'static str = "request";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl Segment for ClientId {
    const NAME: &'static str = "client";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl Segment for CustomerId {
    const NAME: &'static str = "customer";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl Segment for DeviceId {
    const NAME: &'static str = "device";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl Segment for Protocol {
    const NAME: &'static str = "protocol";

    fn read(text: &str) -> Option<Self> {
        Self::known(text)
    }
}

impl Segment for SettingName {
    const NAME: &'static str = "setting";

    fn read(text: &str) -> Option<Self> {
        Self::known(text)
    }
}

/// The platform the settings belong to.
pub(super) struct Platform(pub(super) String);

impl Segment for Platform {
    const NAME: &'static str = "platform";

    fn read(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn a_segment_is_read_with_its_escapes_undone() {
        assert_eq!(device("urn%3Aimei%3A1").as_deref(), Some("urn:imei:1"));
        assert_eq!(device("meter").as_deref(), Some("meter"));
    }

    #[test]
    fn a_segment_that_cannot_be_a_name_names_nothing() {
        assert_eq!(device("a%2Fb"), None);
        assert_eq!(device("%FF"), None);
        assert_eq!(device(&"a".repeat(200)), None);
    }

    fn device(segment: &str) -> Option<String> {
        let pattern = actix_web::dev::ResourceDef::new("/devices/{device}");
        let mut request = TestRequest::with_uri(&format!("/devices/{segment}")).to_srv_request();
        assert!(pattern.capture_match_info(request.match_info_mut()));
        let (request, mut payload) = request.into_parts();
        let found = At::<DeviceId>::from_request(&request, &mut payload).into_inner();
        found.ok().map(|At(device)| device.to_string())
    }
}
