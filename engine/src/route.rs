//! What does a request of a device mean? The CoAP resources of the service and their methods,
//! decided in one place for the classification of datagrams and for the device machine.
//!
//! ```text
//!  POST   /rd              register     (LwM2M Core 1.2 section 6.2.1)
//!  POST   /rd/{location}   update       (section 6.2.2)
//!  DELETE /rd/{location}   deregister   (section 6.2.3)
//!  POST   /dp              Send         (section 6.4.6)
//!  POST   /bs              bootstrap    (section 6.1)
//!  GET    /firmware/{campaign}/{key}    a firmware image
//!  GET    /bspack          bootstrap with a Bootstrap-Pack (section 6.1.7.7)
//!  POST   /                data of a plain device
//! ```

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use crate::firmware::image_key::ImageKey;
use crate::ids::CampaignId;
use crate::location::Location;

/// What a request of a device means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CoapRoute {
    /// It registers.
    Register,
    /// It updates the registration at the location.
    Update(Location),
    /// It ends the registration at the location.
    Deregister(Location),
    /// It sends values (Send).
    Send,
    /// It sends data.
    Data,
    /// It requests its bootstrap.
    Bootstrap,
    /// It downloads the image of a campaign.
    Download(CampaignId, ImageKey),
    /// It requests its bootstrap in one response.
    BootstrapPack,
    /// The resource has no such method.
    NotAllowed(CoapResource),
    /// The path of a registration without a valid location.
    UnknownLocation,
    /// There is no such resource.
    Unknown,
}

/// What a device wants with a message, for logs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DeviceOperation {
    /// To register.
    Register,
    /// To update its registration.
    Update,
    /// To end its registration.
    Deregister,
    /// To send values (Send).
    Send,
    /// To notify of a value that is observed.
    Notify,
    /// To send data.
    Data,
    /// To be bootstrapped.
    Bootstrap,
    /// To prove its keys (DTLS).
    Handshake,
    /// What the service does not offer.
    Unknown,
}

/// The CoAP resources of the service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CoapResource {
    /// Where devices register.
    Registrations,
    /// One registration; `None` if the segment is not a location.
    Registration(Option<Location>),
    /// Where devices send values.
    Send,
    /// Where devices send data.
    Data,
    /// Where devices are bootstrapped.
    Bootstrap,
    /// The image of a campaign, for the device with this key.
    Image(CampaignId, ImageKey),
    /// Where devices are bootstrapped with a Bootstrap-Pack.
    BootstrapPack,
}

impl DeviceOperation {
    /// What the sender of a request or a notification wants.
    pub fn of(message: &Message) -> Self {
        if !message.code.is_request() {
            return Self::Notify;
        }
        match CoapRoute::of(message) {
            CoapRoute::Register => Self::Register,
            CoapRoute::UnknownLocation if message.code == Code::DELETE => Self::Deregister,
            CoapRoute::Update(_) | CoapRoute::UnknownLocation => Self::Update,
            CoapRoute::Deregister(_) => Self::Deregister,
            CoapRoute::Send => Self::Send,
            CoapRoute::Data => Self::Data,
            CoapRoute::Bootstrap | CoapRoute::BootstrapPack => Self::Bootstrap,
            CoapRoute::Download(..) | CoapRoute::NotAllowed(_) | CoapRoute::Unknown => {
                Self::Unknown
            }
        }
    }
}

impl CoapRoute {
    /// What a request means.
    pub fn of(request: &Message) -> Self {
        let mut path = request.uri_path();
        let resource = match [path.next(), path.next(), path.next(), path.next()] {
            [None, ..] => CoapResource::Data,
            [Some("rd"), None, ..] => CoapResource::Registrations,
            [Some("rd"), Some(segment), None, _] => {
                CoapResource::Registration(Location::parse(segment))
            }
            [Some("dp"), None, ..] => CoapResource::Send,
            [Some("bs"), None, ..] => CoapResource::Bootstrap,
            [Some("bspack"), None, ..] => CoapResource::BootstrapPack,
            [Some("firmware"), Some(campaign), Some(key), None] => {
                match (CampaignId::parse(campaign), ImageKey::parse(key)) {
                    (Ok(campaign), Some(key)) => CoapResource::Image(campaign, key),
                    (Ok(_) | Err(_), _) => return Self::Unknown,
                }
            }
            _ => return Self::Unknown,
        };
        match (request.code, resource) {
            (Code::POST, CoapResource::Data) => Self::Data,
            (Code::POST, CoapResource::Registrations) => Self::Register,
            (Code::POST, CoapResource::Registration(Some(location))) => Self::Update(location),
            (Code::DELETE, CoapResource::Registration(Some(location))) => {
                Self::Deregister(location)
            }
            (Code::POST | Code::DELETE, CoapResource::Registration(None)) => Self::UnknownLocation,
            (Code::POST, CoapResource::Send) => Self::Send,
            (Code::POST, CoapResource::Bootstrap) => Self::Bootstrap,
            (Code::GET, CoapResource::Image(campaign, key)) => Self::Download(campaign, key),
            (Code::GET, CoapResource::BootstrapPack) => Self::BootstrapPack,
            (_, resource) => Self::NotAllowed(resource),
        }
    }
}
