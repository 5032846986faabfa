//! What are the keys of action requests?

use engine::action::{Protocol, Status};
use engine::ids::{ActionId, CustomerId, DeviceKey};
use engine::moment::Timestamp;

use super::{Builder, Key, Table, append, instant_of, rest_of};
use crate::record::code;

/// The prefix of the keys of a device's requests that are not final.
pub(crate) fn pending_of(device: DeviceKey) -> Key {
    append(all_pending(), device.as_bytes())
}

/// The prefix of the keys of all requests that are not final.
pub(crate) fn all_pending() -> Key {
    Builder::of(Table::Pending).end()
}

/// An action request.
pub(crate) fn action(id: ActionId) -> Key {
    Builder::of(Table::Action).bytes(id.as_bytes()).end()
}

/// Index: an action request of a customer, of a protocol and in a status, by its creation.
pub(crate) fn action_of_customer(
    customer: &CustomerId,
    protocol: Protocol,
    status: Status,
    id: ActionId,
) -> Key {
    append(
        actions_of_customer(customer, protocol, status),
        id.as_bytes(),
    )
}

/// The prefix of the keys of a customer's action requests of a protocol in a status.
pub(crate) fn actions_of_customer(
    customer: &CustomerId,
    protocol: Protocol,
    status: Status,
) -> Key {
    Builder::of(Table::ActionOfCustomer)
        .text(customer.as_str())
        .byte(code::of_protocol(protocol))
        .byte(code::of_status(status))
        .end()
}

/// Index: an action request of a device, of a protocol and in a status, by its creation.
pub(crate) fn action_of_device(
    device: DeviceKey,
    protocol: Protocol,
    status: Status,
    id: ActionId,
) -> Key {
    append(actions_of_device(device, protocol, status), id.as_bytes())
}

/// The prefix of the keys of a device's action requests of a protocol in a status. Those that are
/// not final are apart from the others, so that a start reads nothing else.
pub(crate) fn actions_of_device(device: DeviceKey, protocol: Protocol, status: Status) -> Key {
    let table = match status.is_pending() {
        true => Table::Pending,
        false => Table::ActionOfDevice,
    };
    Builder::of(table)
        .bytes(device.as_bytes())
        .byte(code::of_protocol(protocol))
        .byte(code::of_status(status))
        .end()
}

/// Index: an action request of a customer, of a protocol and in a status, by its last change.
pub(crate) fn updated_action_of_customer(
    customer: &CustomerId,
    protocol: Protocol,
    status: Status,
    updated: Updated,
) -> Key {
    updated.behind(updates_of_customer(customer, protocol, status))
}

/// The prefix of the keys of a customer's action requests of a protocol in a status, ordered by
/// their last change.
pub(crate) fn updates_of_customer(
    customer: &CustomerId,
    protocol: Protocol,
    status: Status,
) -> Key {
    Builder::of(Table::ActionOfCustomerByUpdate)
        .text(customer.as_str())
        .byte(code::of_protocol(protocol))
        .byte(code::of_status(status))
        .end()
}

/// An action request and its last change: the end of the keys that are ordered by it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Updated {
    /// When.
    pub(crate) at: Timestamp,
    /// The request.
    pub(crate) id: ActionId,
}

impl Updated {
    fn behind(self, prefix: Key) -> Key {
        Builder(prefix)
            .instant(self.at)
            .bytes(self.id.as_bytes())
            .end()
    }

    /// Reads the end of a key after a prefix.
    pub(crate) fn from_key(key: &[u8], beginning: &[u8]) -> Option<Self> {
        let (at, id) = rest_of(key, beginning).split_first_chunk()?;
        Some(Self {
            at: instant_of(*at),
            id: ActionId::from_bytes(id.try_into().ok()?),
        })
    }
}

/// The row that exists while a customer has final action requests that were created in a bucket.
pub(crate) fn final_by_age(bucket: u32, customer: &CustomerId) -> Key {
    append(final_from_bucket(bucket), customer.as_str().as_bytes())
}

/// Where such rows of a bucket and of those after it begin.
pub(crate) fn final_from_bucket(bucket: u32) -> Key {
    Builder::of(Table::FinalByAge)
        .bytes(&bucket.to_be_bytes())
        .end()
}

/// The bucket and the customer of such a row.
pub(crate) fn of_age(by_age: &[u8]) -> Option<(u32, CustomerId)> {
    let rest = rest_of(by_age, &Table::FinalByAge.prefix());
    let (bucket, customer) = rest.split_first_chunk()?;
    let customer = CustomerId::parse(std::str::from_utf8(customer).ok()?).ok()?;
    Some((u32::from_be_bytes(*bucket), customer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn customer_and_bucket_are_read_from_the_row_of_a_bucket() {
        let customer = CustomerId::parse("acme").unwrap();
        let key = final_by_age(300, &customer);
        assert_eq!(of_age(&key), Some((300, customer)));
        assert!(final_from_bucket(300) < key && key < final_from_bucket(301));
        assert_eq!(of_age(&Table::FinalByAge.prefix()), None);
    }
}
