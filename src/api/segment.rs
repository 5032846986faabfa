//! How are path parameters parsed? A value that cannot be an id of its kind is answered with 404,
//! not 400.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};

use engine::Version;
use engine::delivery::partner::Partner;
use engine::ids::{
    ActionId, CampaignId, ClientId, CustomerId, DeviceId, EntryId, EventId, Iccid, ImageId, JobId,
    NodeId, ScheduleId, SecretId, SmsId,
};
use engine::setting::SettingName;

use super::error::ApiError;
use super::words::Word;

/// A parsed path parameter.
pub(super) struct PathSegment<T>(pub(super) T);

/// A type of path parameters.
pub(super) trait Segment: Sized {
    /// The name of the parameter in the path pattern, and in the message of a 404.
    const NAME: &'static str;

    /// Parses the value.
    fn read(text: &str) -> Option<Self>;
}

impl<T: Segment> FromRequest for PathSegment<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        // Names as in the pattern, values in the same order with their escapes undone.
        let values = web::Path::<Vec<String>>::from_request(request, payload).into_inner();
        let values = values.map(web::Path::into_inner).unwrap_or_default();
        let names = request.match_info().iter().map(|(name, _)| name);
        let mut segments = names.zip(values);
        let segment = segments.find(|(name, _)| *name == T::NAME);
        let named = segment.and_then(|(_, text)| T::read(&text)).map(Self);
        ready(named.ok_or_else(|| ApiError::unknown(T::NAME)))
    }
}

/// A parsed path parameter that some routes of a handler do not have.
pub(super) struct OptionalSegment<T>(pub(super) Option<T>);

impl<T: Segment> FromRequest for OptionalSegment<T> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        if request.match_info().get(T::NAME).is_none() {
            return ready(Ok(Self(None)));
        }
        let segment = PathSegment::<T>::from_request(request, payload).into_inner();
        ready(segment.map(|PathSegment(value)| Self(Some(value))))
    }
}

macro_rules! segments {
    ($($type:ident $name:literal),+) => {
        $(impl Segment for $type {
            const NAME: &'static str = $name;

            fn read(text: &str) -> Option<Self> {
                Self::parse(text).ok()
            }
        })+
    };
}

segments!(
    ActionId "request", CampaignId "campaign", ClientId "client", CustomerId "customer",
    DeviceId "device", EntryId "entry", EventId "event", Iccid "iccid", ImageId "image",
    JobId "job", NodeId "node", ScheduleId "schedule", SecretId "secret", Version "version"
);

impl Segment for &'static Partner {
    const NAME: &'static str = "partner";

    fn read(text: &str) -> Option<Self> {
        Partner::find(text)
    }
}

impl Segment for SmsId {
    const NAME: &'static str = "sms";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

impl Segment for SettingName {
    const NAME: &'static str = "setting";

    fn read(text: &str) -> Option<Self> {
        Self::known(text)
    }
}

/// An object id.
pub(super) struct ObjectNumber(pub(super) u16);

impl Segment for ObjectNumber {
    const NAME: &'static str = "object";

    fn read(text: &str) -> Option<Self> {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_digits).map(Self)
    }
}

/// The platform of the settings.
pub(super) struct Platform(pub(super) String);

impl Segment for Platform {
    const NAME: &'static str = "platform";

    fn read(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;
    use actix_web::test::{TestRequest, call_service, init_service, read_body};
    use actix_web::{App, web};

    use super::*;

    #[actix_web::test]
    async fn a_segment_is_parsed_after_percent_decoding() {
        assert_eq!(device("meter").await.as_deref(), Some("meter"));
        assert_eq!(
            device("urn%3Aimei%3A1").await.as_deref(),
            Some("urn:imei:1")
        );
        assert_eq!(device("a+b").await.as_deref(), Some("a+b"));
    }

    #[actix_web::test]
    async fn a_segment_that_cannot_be_an_id_is_not_found() {
        assert_eq!(device("a%2Fb").await, None);
        assert_eq!(device("%FF").await, None);
        assert_eq!(device(&"a".repeat(200)).await, None);
    }

    async fn device(segment: &str) -> Option<String> {
        let named =
            web::get().to(async |PathSegment(device): PathSegment<DeviceId>| device.to_string());
        let app = init_service(App::new().route("/devices/{device}", named)).await;
        let uri = format!("/devices/{segment}");
        let answer = call_service(&app, TestRequest::with_uri(&uri).to_request()).await;
        let found = answer.status() == StatusCode::OK;
        let body = read_body(answer).await;
        found.then(|| String::from_utf8(body.to_vec()).unwrap())
    }
}
