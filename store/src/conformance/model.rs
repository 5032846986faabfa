//! What should lists show? This model keeps everything in maps and filters all of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use engine::action::Action;
use engine::admin_log::entry::Entry;
use engine::ids::{ActionId, CustomerId, DeviceId, DeviceKey, EntryId};
use engine::moment::Timestamp;
use engine::profile::Profile;
use engine::query::listed::ListedAction;
use engine::query::{ActionFilter, ActionOrder, LogFilter, Page, PageRequest};

use crate::SWEPT_MS;

/// Everything that was put and not removed.
#[derive(Default)]
pub(super) struct Model {
    devices: BTreeMap<(CustomerId, DeviceId), Profile>,
    actions: BTreeMap<ActionId, Action>,
    entries: BTreeMap<EntryId, Entry>,
}

impl Model {
    pub(super) fn know(&mut self, device: Profile) {
        self.devices
            .insert((device.customer.clone(), device.device.clone()), device);
    }

    pub(super) fn forget(&mut self, device: &Profile) {
        self.devices
            .remove(&(device.customer.clone(), device.device.clone()));
        self.actions
            .retain(|_, action| action.device != device.key() || !action.status.is_pending());
    }

    pub(super) fn remove_actions(&mut self, customer: &CustomerId) {
        self.actions
            .retain(|_, action| action.customer != *customer);
    }

    pub(super) fn put(&mut self, action: Action) {
        self.actions.insert(action.id, action);
    }

    pub(super) fn append(&mut self, entry: Entry) {
        self.entries.insert(entry.id, entry);
    }

    pub(super) fn remove_log(&mut self, customer: &CustomerId) {
        self.entries.retain(|_, entry| entry.customer != *customer);
    }

    /// Removes what is too old and returns how much that was.
    pub(super) fn sweep(&mut self, before: Timestamp) -> u64 {
        let count = self.actions.len() + self.entries.len();
        let before = before.as_ms().div_euclid(SWEPT_MS) * SWEPT_MS;
        self.actions
            .retain(|_, action| action.status.is_pending() || action.created_at.as_ms() >= before);
        self.entries.retain(|_, entry| entry.at.as_ms() >= before);
        u64::try_from(count - self.actions.len() - self.entries.len()).expect("a count")
    }

    pub(super) fn devices(&self) -> Vec<Profile> {
        self.devices.values().cloned().collect()
    }

    pub(super) fn devices_with_customer(&self, customer: &CustomerId) -> Vec<Profile> {
        self.devices()
            .into_iter()
            .filter(|device| device.customer == *customer)
            .collect()
    }

    /// The devices of a customer that have requests, or had them before they were removed.
    pub(super) fn devices_with_actions(&self, customer: &CustomerId) -> Vec<DeviceKey> {
        let actions = self.actions.values();
        let actions = actions.filter(|action| action.customer == *customer);
        actions.map(|action| action.device).collect()
    }

    pub(super) fn pending(&self) -> Vec<Action> {
        self.actions
            .values()
            .filter(|action| action.status.is_pending())
            .cloned()
            .collect()
    }

    pub(super) fn devices_of(&self, customer: &CustomerId, page: PageRequest) -> Page<Profile> {
        cut(self.devices_with_customer(customer), page)
    }

    pub(super) fn actions(&self, filter: &ActionFilter, page: PageRequest) -> Page<ListedAction> {
        let passes = |action: &&Action| {
            action.customer == filter.customer
                && filter.device.is_none_or(|device| action.device == device)
                && filter
                    .protocol
                    .is_none_or(|protocol| action.protocol() == protocol)
                && filter.statuses.has(action.status)
        };
        let mut passing: Vec<Action> = self.actions.values().filter(passes).cloned().collect();
        match filter.order {
            ActionOrder::Created => {}
            ActionOrder::CreatedDescending => passing.reverse(),
            ActionOrder::Updated => passing.sort_by_key(|action| (action.updated_at, action.id)),
            ActionOrder::UpdatedDescending => {
                passing.sort_by_key(|action| Reverse((action.updated_at, action.id)));
            }
        }
        cut(passing.into_iter().map(ListedAction::of).collect(), page)
    }

    pub(super) fn entries(&self, filter: &LogFilter, page: PageRequest) -> Page<Entry> {
        let passes = |entry: &&Entry| {
            let iccid = entry.about.as_ref().map(|about| &about.iccid);
            entry.customer == filter.customer
                && entry.at >= filter.window.from
                && entry.at <= filter.window.until
                && (filter.iccid.is_none() || filter.iccid.as_ref() == iccid)
                && filter
                    .category
                    .is_none_or(|category| entry.category == category)
                && filter
                    .subject
                    .is_none_or(|subject| entry.subject == subject)
        };
        cut(
            self.entries
                .values()
                .rev()
                .filter(passes)
                .cloned()
                .collect(),
            page,
        )
    }
}

fn cut<T>(all: Vec<T>, page: PageRequest) -> Page<T> {
    let total = u64::try_from(all.len()).expect("a count");
    let skip = usize::try_from(page.skip()).expect("a small page");
    let size = usize::try_from(page.size).expect("a small page");
    Page {
        items: all.into_iter().skip(skip).take(size).collect(),
        total,
    }
}
