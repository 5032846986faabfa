//! How are the configuration of bootstrap and the last bootstrap of a device stored?

use engine::Code;
use engine::bootstrap::{
    AccountCertificate, BootstrapConfig, BootstrapPath, BootstrapRecord, BootstrapServer,
    BootstrapStep,
};
use engine::device::record::Registration;
use engine::moment::Timestamp;
use engine::sealed::Sealed;
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use super::value::{NamedValueV1, named_value_records, path_record, read_named_value, read_path};
use super::{Unreadable, code, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct ConfigV1<'a> {
    #[b(0)]
    servers: Vec<ServerV1<'a>>,
    #[n(1)]
    objects: Vec<NamedValueV1>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct ServerV1<'a> {
    #[n(0)]
    short_id: u16,
    #[b(1)]
    uri: Option<&'a str>,
    #[n(2)]
    lifetime_s: u32,
    #[n(3)]
    binding: String,
    #[n(4)]
    security: u8,
    /// Absent unless the account has a certificate.
    #[b(5)]
    certificate: Option<CertificateV1<'a>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct CertificateV1<'a> {
    #[cbor(b(0), with = "minicbor::bytes")]
    certificate: &'a [u8],
    #[cbor(b(1), with = "minicbor::bytes")]
    sealed_key: &'a [u8],
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct BootstrapV1<'a> {
    #[n(0)]
    started_at_ms: i64,
    #[n(1)]
    ended_at_ms: Option<i64>,
    #[n(2)]
    state: u8,
    #[b(3)]
    error: Option<&'a str>,
    #[n(4)]
    security: u8,
    #[n(5)]
    steps: Vec<StepV1>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct StepV1 {
    #[n(0)]
    operation: u8,
    /// Absent for Finish and a pack; empty for everything.
    #[n(1)]
    path: Option<ByteVec>,
    #[n(2)]
    format: Option<u16>,
    #[n(3)]
    at_ms: i64,
    #[n(4)]
    answer: Option<u8>,
}

/// Writes a configuration.
pub(crate) fn write_config(config: &BootstrapConfig) -> Vec<u8> {
    let record = ConfigV1 {
        servers: config.servers.iter().map(server_record).collect(),
        objects: named_value_records(&config.objects),
    };
    write(VERSION, &record)
}

/// Reads a configuration.
pub(crate) fn read_config(value: &[u8]) -> Result<BootstrapConfig, Unreadable> {
    let record: ConfigV1<'_> = read(VERSION, value)?;
    let servers = record.servers.into_iter().map(read_server);
    Ok(BootstrapConfig {
        servers: servers.collect::<Result<_, _>>()?,
        objects: read_named_value(record.objects)?,
    })
}

/// Writes a bootstrap.
pub(crate) fn write_bootstrap(bootstrap: &BootstrapRecord) -> Vec<u8> {
    let record = BootstrapV1 {
        started_at_ms: bootstrap.started_at.as_ms(),
        ended_at_ms: bootstrap.ended_at.map(Timestamp::as_ms),
        state: code::of_bootstrap_state(bootstrap.state),
        error: bootstrap.error.as_deref(),
        security: code::of_bootstrap_security(bootstrap.security),
        steps: bootstrap.steps.iter().map(step_record).collect(),
    };
    write(VERSION, &record)
}

/// Reads a bootstrap.
pub(crate) fn read_bootstrap(value: &[u8]) -> Result<BootstrapRecord, Unreadable> {
    let record: BootstrapV1<'_> = read(VERSION, value)?;
    let steps = record.steps.into_iter().map(read_step);
    Ok(BootstrapRecord {
        started_at: Timestamp::from_ms(record.started_at_ms),
        ended_at: record.ended_at_ms.map(Timestamp::from_ms),
        state: code::bootstrap_state(record.state)?,
        error: record.error.map(Into::into),
        security: code::bootstrap_security(record.security)?,
        steps: steps.collect::<Result<_, _>>()?,
    })
}

fn server_record(server: &BootstrapServer) -> ServerV1<'_> {
    ServerV1 {
        short_id: server.short_id,
        uri: server.uri.as_deref(),
        lifetime_s: server.lifetime_s,
        binding: server.binding.to_string(),
        security: code::of_account_security(server.security),
        certificate: server.certificate.as_ref().map(certificate_record),
    }
}

fn read_server(record: ServerV1<'_>) -> Result<BootstrapServer, Unreadable> {
    let binding = Registration::parse_binding(&record.binding);
    Ok(BootstrapServer {
        short_id: record.short_id,
        uri: record.uri.map(Into::into),
        lifetime_s: record.lifetime_s,
        binding: binding.ok_or(Unreadable::Damaged("no binding"))?,
        security: code::account_security(record.security)?,
        certificate: record.certificate.map(read_certificate),
    })
}

fn certificate_record(certificate: &AccountCertificate) -> CertificateV1<'_> {
    CertificateV1 {
        certificate: &certificate.certificate,
        sealed_key: certificate.key.as_bytes(),
    }
}

fn read_certificate(record: CertificateV1<'_>) -> AccountCertificate {
    AccountCertificate {
        certificate: record.certificate.into(),
        key: Sealed::from_bytes(record.sealed_key.into()),
    }
}

fn step_record(step: &BootstrapStep) -> StepV1 {
    StepV1 {
        operation: code::of_bootstrap_operation(step.operation),
        path: step.path.map(|path| match path {
            BootstrapPath::Root => Vec::new().into(),
            BootstrapPath::At(path) => path_record(path),
        }),
        format: step.format,
        at_ms: step.at.as_ms(),
        answer: step.answer.map(Code::as_byte),
    }
}

fn read_step(record: StepV1) -> Result<BootstrapStep, Unreadable> {
    let path = record.path.map(|bytes| match bytes.is_empty() {
        true => Ok(BootstrapPath::Root),
        false => read_path(&bytes).map(BootstrapPath::At),
    });
    Ok(BootstrapStep {
        operation: code::bootstrap_operation(record.operation)?,
        path: path.transpose()?,
        format: record.format,
        at: Timestamp::from_ms(record.at_ms),
        answer: record.answer.map(Code::from_byte),
    })
}
