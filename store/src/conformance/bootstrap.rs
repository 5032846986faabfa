//! What is stored of bootstrap?

use engine::bootstrap::{
    AccountCertificate, AccountSecurity, BootstrapConfig, BootstrapOperation, BootstrapPath,
    BootstrapRecord, BootstrapScope, BootstrapSecurity, BootstrapServer, BootstrapState,
    BootstrapStep,
};
use engine::change::Change;
use engine::device::record::Registration;
use engine::sealed::Sealed;
use engine::{Code, Path, Value};

use super::samples::{acme, at, customer, device};
use super::{TestBed, put, wait};
use crate::Store;

pub(super) fn configurations_come_back_until_they_are_removed(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let meter = device(&acme(), 1);
    let of_customer = BootstrapScope::Customer(acme());
    let of_device = BootstrapScope::Device(meter.key());
    let scopes = [(&of_customer, 1111), (&of_device, 2222)];
    let puts = scopes.map(|(scope, short_id)| Change::PutBootstrapConfig {
        scope: scope.clone(),
        config: Box::new(config(short_id)),
    });
    let mut changes = vec![Change::PutCustomer(customer("acme")), added(&meter)];
    changes.extend(puts);
    put(&*store, changes);
    for _ in 0..2 {
        for (scope, short_id) in scopes {
            let found = wait(store.bootstrap_config(scope.clone()));
            assert_eq!(found, Ok(Some(config(short_id))));
        }
        drop(store);
        store = ground.open();
    }
    put(
        &*store,
        vec![Change::RemoveBootstrapConfig(of_device.clone())],
    );
    assert_eq!(wait(store.bootstrap_config(of_device)), Ok(None));
    put(&*store, vec![Change::RemoveCustomer(acme())]);
    assert_eq!(wait(store.bootstrap_config(of_customer)), Ok(None));
}

pub(super) fn the_last_one_goes_with_its_device(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let scope = BootstrapScope::Device(meter.key());
    put(
        &*store,
        vec![
            added(&meter),
            Change::PutBootstrapConfig {
                scope: scope.clone(),
                config: Box::new(config(1)),
            },
        ],
    );
    for last in [
        bootstrap(BootstrapState::Running),
        bootstrap(BootstrapState::Failed),
    ] {
        let change = Change::PutBootstrap {
            device: meter.key(),
            bootstrap: Box::new(last.clone()),
        };
        put(&*store, vec![change]);
        assert_eq!(last_of(&*store, &meter), Some(last));
    }
    put(&*store, vec![Change::RemoveDevice(meter.key())]);
    assert_eq!(last_of(&*store, &meter), None);
    assert_eq!(wait(store.bootstrap_config(scope)), Ok(None));
}

fn last_of(store: &dyn Store, device: &engine::profile::Profile) -> Option<BootstrapRecord> {
    wait(store.bootstrap_of(device.key())).expect("an answer")
}

fn added(profile: &engine::profile::Profile) -> Change {
    Change::PutDevice {
        was: None,
        profile: Box::new(profile.clone()),
    }
}

/// A configuration whose first server has a short id.
pub(crate) fn config(short_id: u16) -> BootstrapConfig {
    let server = |short_id, uri: Option<&str>, security| BootstrapServer {
        short_id,
        uri: uri.map(Into::into),
        lifetime_s: 86_400,
        binding: Registration::parse_binding("UQ").expect("a binding"),
        security,
        certificate: None,
    };
    let certificate = Some(AccountCertificate {
        certificate: Box::from([1, 2]),
        key: Sealed::from_bytes(Box::from([3])),
    });
    BootstrapConfig {
        servers: Box::new([
            server(short_id, None, AccountSecurity::Psk),
            server(7, Some("coap://other.example"), AccountSecurity::NoSec),
            server(8, None, AccountSecurity::Rpk),
            BootstrapServer {
                certificate,
                ..server(9, None, AccountSecurity::X509)
            },
        ]),
        objects: Box::new([
            (Path::resource(3, 0, 15), Value::String("UTC".into())),
            (Path::resource(1, 0, 13), Value::Integer(1)),
        ]),
    }
}

/// A bootstrap in a state.
pub(crate) fn bootstrap(state: BootstrapState) -> BootstrapRecord {
    let step = |operation, path, format| BootstrapStep {
        operation,
        path,
        format,
        at: at(2),
        answer: Some(Code::CHANGED),
    };
    let instance = BootstrapPath::At(Path::instance(0, 1));
    BootstrapRecord {
        started_at: at(1),
        ended_at: Some(at(3)),
        state,
        error: Some("the device answered Finish with 4.06".into()),
        security: BootstrapSecurity::Dtls,
        steps: vec![
            step(BootstrapOperation::Delete, Some(BootstrapPath::Root), None),
            step(BootstrapOperation::Write, Some(instance), Some(11_542)),
            step(BootstrapOperation::Finish, None, None),
        ],
    }
}
