//! Which handlers show how the service proves its identity to devices over DTLS, and set who
//! certifies the devices of a customer?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use engine::associations::server_key::ServerKey;
use engine::base64_text;
use engine::certificate_authorities::CertificateAuthorities;
use engine::directory::DirectoryRefusal;
use engine::directory::customer::put_authorities;
use engine::ids::CustomerId;
use engine::moment::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Serialize;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Json;
use super::error::ApiError;
use super::records::{settle, to_its_end};

/// What a 404 names if nobody certifies devices.
const NAME: &str = "certificate authority";

/// The characters of a line in PEM (RFC 7468 section 2).
const LINE: usize = 64;

/// How the service proves its identity.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DtlsBody {
    public_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificates: Option<String>,
}

/// Who certifies the devices of a customer.
#[derive(Serialize)]
pub(super) struct CertificateAuthoritiesBody {
    certificates: String,
    set: String,
}

/// GET: shows how the service proves its identity.
pub(super) async fn show(api: web::Data<Api>) -> HttpResponse {
    HttpResponse::Ok().json(DtlsBody::of(&api.server_key.get()))
}

/// GET: shows the authorities of the customer.
pub(super) async fn show_authorities(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let stored = stored(&api, caller.customer).await?;
    let stored = stored.ok_or_else(|| ApiError::unknown(NAME))?;
    Ok(HttpResponse::Ok().json(CertificateAuthoritiesBody::of(&stored)))
}

/// PUT: sets them. Sessions that began with a certificate end if they change.
pub(super) async fn put_authorities_of_customer(
    caller: AuthenticatedCaller,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let now = api.clock.now();
    let new = fields.required("certificates", |text| read(text, now));
    let new = fields.finish(new)?;
    let before = stored(&api, caller.customer.clone()).await?;
    if let Some(before) = before.filter(|it| it.certificates() == new.certificates()) {
        return Ok(HttpResponse::Ok().json(CertificateAuthoritiesBody::of(&before)));
    }
    let body = CertificateAuthoritiesBody::of(&new);
    replace(api, caller.customer, Some(new)).await?;
    Ok(HttpResponse::Ok().json(body))
}

/// DELETE: removes them.
pub(super) async fn remove_authorities(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let before = stored(&api, caller.customer.clone()).await?;
    before.ok_or_else(|| ApiError::unknown(NAME))?;
    replace(api, caller.customer, None).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn stored(
    api: &Api,
    customer: CustomerId,
) -> Result<Option<CertificateAuthorities>, ApiError> {
    Ok(api.store.certificate_authorities(customer).await?)
}

/// Stores the authorities, and then ends the sessions that earlier ones may have admitted.
async fn replace(
    api: web::Data<Api>,
    customer: CustomerId,
    authorities: Option<CertificateAuthorities>,
) -> Result<(), ApiError> {
    to_its_end(async move {
        settle(&*api.commits, async || {
            let found = api.store.customer(customer.clone()).await?;
            let found = found.ok_or(DirectoryRefusal::CustomerUnknown)?;
            Ok(put_authorities(found, authorities.clone()))
        })
        .await?;
        Ok(api.devices.end_certified(&customer).await?)
    })
    .await
}

/// Certificates in PEM.
fn read(text: &str, now: Timestamp) -> Result<CertificateAuthorities, String> {
    let read = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    let read = read.map_err(|_| "must be certificates in PEM".to_owned())?;
    let certificates = read.iter().map(|it| it.as_ref().into()).collect();
    CertificateAuthorities::new(certificates, now).map_err(|error| error.to_string())
}

/// Certificates as PEM (RFC 7468 section 5).
pub(super) fn pem<'c>(certificates: impl IntoIterator<Item = &'c Box<[u8]>>) -> String {
    let mut text = String::new();
    for certificate in certificates {
        let base64 = base64_text::encode(certificate);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = &base64[..];
        while !rest.is_empty() {
            let (line, behind) = rest.split_at(rest.len().min(LINE));
            text.push_str(line);
            text.push('\n');
            rest = behind;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

impl DtlsBody {
    pub(super) fn of(key: &ServerKey) -> Self {
        let certificates = key.certificates();
        Self {
            public_key: base64_text::encode(key.public_key()),
            certificates: (!certificates.is_empty()).then(|| pem(certificates)),
        }
    }
}

impl CertificateAuthoritiesBody {
    pub(super) fn of(authorities: &CertificateAuthorities) -> Self {
        Self {
            certificates: pem(authorities.certificates()),
            set: authorities.set_at().iso().to_string(),
        }
    }
}
