//! On what terms does an arbiter serve the devices of each customer?
//!
//! What a customer chooses anew is durable before it is told to the arbiters; a device goes by it
//! from its next input on.

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

/// The terms of all customers, as a start finds them.
#[derive(Clone)]
pub struct PolicyCache {
    /// Those of whoever chose nothing.
    default_policy: Arc<CustomerPolicy>,
    settings: Arc<HashMap<CustomerId, Arc<CustomerPolicy>>>,
}

impl PolicyCache {
    /// The terms of customers that chose so; all others have the usual ones.
    pub fn of(rules: &Arc<Rules>, chosen: &[CustomerSettings]) -> Self {
        let terms_of =
            |chosen: &CustomerSettings| (chosen.customer.clone(), policy_of(rules, chosen));
        Self {
            default_policy: Arc::new(CustomerPolicy::of_rules(Arc::clone(rules))),
            settings: Arc::new(chosen.iter().map(terms_of).collect()),
        }
    }

    /// What holds for every device alike.
    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.default_policy.rules
    }
}

/// The terms of a customer that chose so. Definitions that cannot be read any more are told here,
/// where terms are made, and not wherever they hold.
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

/// The terms of the customers whose devices are or were here. There is one of each customer, for
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

    /// The terms of a customer, now and later.
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

/// The terms of one customer, as they are by now.
pub(crate) struct PolicyHandle(RefCell<Arc<CustomerPolicy>>);

impl PolicyHandle {
    fn new(policy: Arc<CustomerPolicy>) -> Self {
        Self(RefCell::new(policy))
    }

    pub(crate) fn policy(&self) -> Arc<CustomerPolicy> {
        Arc::clone(&self.0.borrow())
    }

    /// Has its devices go by other terms, each from its next input on.
    pub(crate) fn replace(&self, policy: Arc<CustomerPolicy>) {
        self.0.replace(policy);
    }

    /// The same, to be looked at.
    pub(crate) fn current(&self) -> Ref<'_, Arc<CustomerPolicy>> {
        self.0.borrow()
    }
}

/// A customer chose anew, and that is durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct PolicyChanged {
    pub(crate) customer: CustomerId,
    pub(crate) policy: Arc<CustomerPolicy>,
}
