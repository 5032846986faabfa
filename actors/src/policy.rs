//! Which policy applies to the devices of each customer?
//!
//! A customer's change is durable before the arbiters receive it; a device applies it from its next
//! input on.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use actix::Message;
use engine::definition::DefinitionId;
use engine::ids::CustomerId;
use engine::policy::{CustomerPolicy, CustomerSettings};
use engine::rules::Rules;
use tracing::warn;

/// The policies of all customers at the start.
#[derive(Clone)]
pub struct PolicyCache {
    /// The policy of customers without settings.
    default_policy: Arc<CustomerPolicy>,
    settings: Arc<HashMap<CustomerId, Arc<CustomerPolicy>>>,
}

impl PolicyCache {
    /// The policies of customers with these settings; all others have the default.
    pub fn of(rules: &Arc<Rules>, chosen: &[CustomerSettings]) -> Self {
        let terms_of =
            |chosen: &CustomerSettings| (chosen.customer.clone(), policy_of(rules, chosen));
        Self {
            default_policy: Arc::new(CustomerPolicy::of_rules(Arc::clone(rules))),
            settings: Arc::new(chosen.iter().map(terms_of).collect()),
        }
    }

    /// The rules that apply to every device.
    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.default_policy.rules
    }
}

/// The policy of a customer with these settings. Definitions that cannot be read any more are
/// logged here, where a policy is made, and not for every device.
pub(crate) fn policy_of(rules: &Arc<Rules>, chosen: &CustomerSettings) -> Arc<CustomerPolicy> {
    let policy = CustomerPolicy::of(Arc::clone(rules), chosen);
    for DefinitionId {
        customer,
        object,
        version,
    } in &policy.unreadable
    {
        warn!(%customer, object, %version, "an object definition cannot be parsed");
    }
    Arc::new(policy)
}

/// The policies of the customers whose devices are or were here. Each customer has one, shared by
/// all of its devices.
pub(crate) struct PolicyHandles {
    cache: PolicyCache,
    by_customer: RefCell<HashMap<CustomerId, Rc<PolicyHandle>>>,
}

impl PolicyHandles {
    pub(crate) fn new(cache: PolicyCache) -> Self {
        Self {
            cache,
            by_customer: RefCell::default(),
        }
    }

    /// The policy of a customer, kept up to date.
    pub(crate) fn of(&self, customer: CustomerId) -> Rc<PolicyHandle> {
        let mut by_customer = self.by_customer.borrow_mut();
        let policy = self
            .cache
            .settings
            .get(&customer)
            .unwrap_or(&self.cache.default_policy);
        let handle = by_customer.entry(customer);
        let handle = handle.or_insert_with(|| Rc::new(PolicyHandle::new(Arc::clone(policy))));
        Rc::clone(handle)
    }
}

/// The current policy of one customer.
pub(crate) struct PolicyHandle(RefCell<Arc<CustomerPolicy>>);

impl PolicyHandle {
    fn new(policy: Arc<CustomerPolicy>) -> Self {
        Self(RefCell::new(policy))
    }

    pub(crate) fn policy(&self) -> Arc<CustomerPolicy> {
        Arc::clone(&self.0.borrow())
    }

    /// Replaces the policy; each device applies it from its next input on.
    pub(crate) fn replace(&self, policy: Arc<CustomerPolicy>) {
        self.0.replace(policy);
    }

    /// Borrows the current policy.
    pub(crate) fn current(&self) -> Ref<'_, Arc<CustomerPolicy>> {
        self.0.borrow()
    }
}

/// The settings of a customer changed, and that is durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct PolicyChanged {
    pub(crate) customer: CustomerId,
    pub(crate) policy: Arc<CustomerPolicy>,
}
