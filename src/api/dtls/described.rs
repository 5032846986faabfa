//! Which operations show and set what proves identities over DTLS? The OpenAPI descriptions.

use engine::limits::{AUTHORITIES_MAX, AUTHORITY_BYTES_MAX};

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::public_key::described::PUBLIC_KEY;

/// What certificates in PEM are.
const AUTHORITIES: &str = "Their certificates in PEM, one after the other.";

/// The longest PEM: base64 takes four thirds, and there are line ends and marks.
const PEM_CHARACTERS_MAX: usize = 2 * AUTHORITIES_MAX * AUTHORITY_BYTES_MAX;

/// GET, of the service.
pub(in crate::api) fn show() -> ApiOperation {
    let text = "Returns the public key with which the service proves its identity to devices that \
                have a raw public key or a certificate, and the certificates that it shows, if it \
                has any. Devices are provisioned with one of them.";
    ApiOperation::new(
        "getDtls",
        Tag::Devices,
        "Get the DTLS identity of the service",
    )
    .description(text)
    .answer(200, identity(), "The identity of the service.")
}

/// GET.
pub(in crate::api) fn show_authorities() -> ApiOperation {
    let summary = "Get the certificate authorities";
    let operation = ApiOperation::new("getCertificateAuthorities", Tag::Devices, summary)
        .description("Returns the authorities that certify the devices of the customer.")
        .answer(200, authorities(), "The authorities.");
    unless_unset(operation)
}

/// PUT.
pub(in crate::api) fn put_authorities() -> ApiOperation {
    let text = format!(
        "Sets the authorities that certify the devices of the customer, at most \
         {AUTHORITIES_MAX}. A device may then prove its identity over DTLS with an X.509 \
         certificate that one of them has signed and whose common name, or a DNS name or URI of \
         its subjectAltName, is the endpoint name of the device. A change ends every DTLS session \
         that began with a certificate; devices make a new handshake."
    );
    let summary = "Set the certificate authorities";
    ApiOperation::new("setCertificateAuthorities", Tag::Devices, summary)
        .description(&text)
        .json(new_authorities(), "The authorities.")
        .answer(200, authorities(), "The authorities.")
}

/// DELETE.
pub(in crate::api) fn remove_authorities() -> ApiOperation {
    let text = "Removes the authorities, and ends every DTLS session that began with a certificate \
                of theirs.";
    let summary = "Delete the certificate authorities";
    let operation = ApiOperation::new("deleteCertificateAuthorities", Tag::Devices, summary)
        .description(text)
        .answer_empty(204, "No authority certifies devices.");
    unless_unset(operation)
}

fn unless_unset(operation: ApiOperation) -> ApiOperation {
    operation.refusal(404, &["NOT_FOUND"], "No authorities are set.")
}

fn identity() -> Schema {
    Schema::object()
        .must(
            "publicKey",
            Schema::text().example(PUBLIC_KEY),
            "The SubjectPublicKeyInfo of the key, in DER, in base64.",
        )
        .may(
            "certificates",
            Schema::text(),
            "The certificate chain in PEM, the certificate of the service first; absent if the \
             service shows its public key alone.",
        )
        .named("DtlsIdentity")
}

fn new_authorities() -> Schema {
    Schema::closed()
        .must(
            "certificates",
            Schema::text_of(1..=PEM_CHARACTERS_MAX),
            AUTHORITIES,
        )
        .named("NewCertificateAuthorities")
}

fn authorities() -> Schema {
    Schema::object()
        .must("certificates", Schema::text(), AUTHORITIES)
        .must("set", names::instant(), "When they were set.")
        .named("CertificateAuthorities")
}
