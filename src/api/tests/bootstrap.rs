//! The bodies of bootstrap, as golden files.

use engine::bootstrap::{
    AccountCertificate, AccountSecurity, BootstrapConfig, BootstrapOperation, BootstrapPath,
    BootstrapRecord, BootstrapSecurity, BootstrapServer, BootstrapState, BootstrapStep, SHORT_ID,
};
use engine::directory::bootstrap::parse_binding;
use engine::moment::Timestamp;
use engine::sealed::Sealed;
use engine::{Code, Path, Value};

use super::golden;
use crate::api::bootstrap::ConfigBody;

/// A Tuesday in November 2023.
const ASKED: Timestamp = Timestamp::from_ms(1_700_000_000_000);

#[test]
fn a_configuration_with_three_servers_and_two_values() {
    let server = |short_id, uri: Option<&str>, security| BootstrapServer {
        short_id,
        uri: uri.map(Into::into),
        lifetime_s: 86_400,
        binding: parse_binding("UQ").unwrap(),
        security,
        certificate: None,
    };
    let certificate = AccountCertificate {
        certificate: Box::from([0x30, 0]),
        key: Sealed::from_bytes(Box::from([1])),
    };
    let config = BootstrapConfig {
        servers: Box::new([
            server(SHORT_ID, None, AccountSecurity::Psk),
            server(2222, Some("coap://second.example"), AccountSecurity::NoSec),
            BootstrapServer {
                certificate: Some(certificate),
                ..server(3333, None, AccountSecurity::X509)
            },
        ]),
        objects: Box::new([
            (Path::resource(1, 1, 13), Value::Integer(2)),
            (
                Path::resource(3, 0, 15),
                Value::String("Europe/Berlin".to_owned()),
            ),
        ]),
    };
    golden::check("bootstrap_configuration", &ConfigBody::of(&config));
}

/// A bootstrap whose Finish the device refuses.
pub(super) fn refused() -> BootstrapRecord {
    let step = |operation, path, format, code| BootstrapStep {
        operation,
        path,
        format,
        at: ASKED.plus_s(1),
        answer: Some(code),
    };
    let account = Some(BootstrapPath::At(Path::instance(0, 1)));
    BootstrapRecord {
        started_at: ASKED,
        ended_at: Some(ASKED.plus_s(2)),
        state: BootstrapState::Failed,
        error: Some("the device answered Finish with 4.06".into()),
        security: BootstrapSecurity::Dtls,
        steps: vec![
            step(
                BootstrapOperation::Delete,
                Some(BootstrapPath::Root),
                None,
                Code::DELETED,
            ),
            step(
                BootstrapOperation::Write,
                account,
                Some(11_542),
                Code::CHANGED,
            ),
            step(BootstrapOperation::Finish, None, None, Code::NOT_ACCEPTABLE),
        ],
    }
}
