//! The vocabulary of bootstrap.

use std::sync::Arc;

use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Reading;
use protocol::lwm2m::value::Value;

use super::{DeviceFixture, HOME, Lines};
use crate::bootstrap::{BootstrapFault, BootstrapPlan};
use crate::policy::CustomerPolicy;
use crate::rules::{NoSecBootstrap, Rules};

impl DeviceFixture {
    /// A device at its address that is bootstrapped without DTLS.
    pub(in crate::device::tests) fn bootstrapped_without_dtls() -> Self {
        let mut fixture = Self::new();
        let rules = Rules {
            bootstrap: NoSecBootstrap::Accepted,
            ..Rules::clone(&fixture.policy.rules)
        };
        let policy = CustomerPolicy {
            rules: Arc::new(rules),
            ..CustomerPolicy::clone(&fixture.policy)
        };
        fixture.policy = Arc::new(policy);
        fixture.device.take_policy(Arc::clone(&fixture.policy));
        fixture
    }

    /// The device asks for its bootstrap.
    pub(in crate::device::tests) fn ask_for_bootstrap(
        &mut self,
        from: &str,
        queries: &[&str],
    ) -> Lines {
        let message = self.request(Code::POST, &["bs"]).with_uri_query(queries);
        self.receives(from, &message)
    }

    /// The service has prepared it.
    pub(in crate::device::tests) fn prepared(
        &mut self,
        prepared: Result<BootstrapPlan, BootstrapFault>,
    ) -> Lines {
        let step = self.step(|device, m, out| device.handle_bootstrap(m, prepared, out));
        step.1
    }

    /// The device has asked at its address, and is sent the first request.
    pub(in crate::device::tests) fn begin_bootstrap(&mut self) -> Lines {
        self.ask_for_bootstrap(HOME, &["ep=meter", "pct=110"]);
        self.prepared(Ok(plan()))
    }
}

/// An account with two values and a server with one.
pub(in crate::device::tests) fn plan() -> BootstrapPlan {
    let server = Reading::from([(Path::resource(1, 0, 1), Value::Integer(86_400))]);
    BootstrapPlan {
        accounts: vec![vec![
            (0, Value::String("coap://a".to_owned())),
            (10, Value::Integer(1111)),
        ]],
        instances: vec![(Path::instance(1, 0), server)],
    }
}
