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
use engine::rules::Rules;
use engine::terms::{Chosen, Terms};
use tracing::warn;

/// The terms of all customers, as a start finds them.
#[derive(Clone)]
pub struct Book {
    /// Those of whoever chose nothing.
    usual: Arc<Terms>,
    chosen: Arc<HashMap<CustomerId, Arc<Terms>>>,
}

impl Book {
    /// The terms of customers that chose so; all others have the usual ones.
    pub fn of(rules: &Arc<Rules>, chosen: &[Chosen]) -> Self {
        let terms_of = |chosen: &Chosen| (chosen.customer.clone(), terms_of(rules, chosen));
        Self {
            usual: Arc::new(Terms::of_rules(Arc::clone(rules))),
            chosen: Arc::new(chosen.iter().map(terms_of).collect()),
        }
    }

    /// What holds for every device alike.
    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.usual.rules
    }
}

/// The terms of a customer that chose so. Definitions that cannot be read any more are told here,
/// where terms are made, and not wherever they hold.
pub(crate) fn terms_of(rules: &Arc<Rules>, chosen: &Chosen) -> Arc<Terms> {
    let terms = Terms::of(Arc::clone(rules), chosen);
    for DefinitionId {
        customer,
        object,
        version,
    } in &terms.unreadable
    {
        warn!(%customer, object, %version, "an object definition cannot be parsed");
    }
    Arc::new(terms)
}

/// The terms of the customers whose devices are or were here. There is one of each customer, for
/// all of its devices.
pub(crate) struct Contracts {
    book: Book,
    by_customer: RefCell<HashMap<CustomerId, Rc<Contract>>>,
}

impl Contracts {
    pub(crate) fn new(book: Book) -> Self {
        Self {
            book,
            by_customer: RefCell::default(),
        }
    }

    /// The terms of a customer, now and later.
    pub(crate) fn of(&self, customer: CustomerId) -> Rc<Contract> {
        let mut by_customer = self.by_customer.borrow_mut();
        let terms = self.book.chosen.get(&customer).unwrap_or(&self.book.usual);
        let contract = by_customer.entry(customer);
        let contract = contract.or_insert_with(|| Rc::new(Contract::new(Arc::clone(terms))));
        Rc::clone(contract)
    }
}

/// The terms of one customer, as they are by now.
pub(crate) struct Contract(RefCell<Arc<Terms>>);

impl Contract {
    fn new(terms: Arc<Terms>) -> Self {
        Self(RefCell::new(terms))
    }

    pub(crate) fn terms(&self) -> Arc<Terms> {
        Arc::clone(&self.0.borrow())
    }

    /// Has its devices go by other terms, each from its next input on.
    pub(crate) fn replace(&self, terms: Arc<Terms>) {
        self.0.replace(terms);
    }

    /// The same, to be looked at.
    pub(crate) fn current(&self) -> Ref<'_, Arc<Terms>> {
        self.0.borrow()
    }
}

/// A customer chose anew, and that is durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct NewTerms {
    pub(crate) customer: CustomerId,
    pub(crate) terms: Arc<Terms>,
}
