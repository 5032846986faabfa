//! Where do the rows of action requests lie?

use engine::action::{Protocol, Status};
use engine::ids::{ActionId, CustomerId, DeviceKey};

use super::{Builder, Key, Table, append};
use crate::record::code;

/// That a device has a request that is not final.
pub(crate) fn pending(device: DeviceKey, action: ActionId) -> Key {
    append(pending_of(device), action.as_bytes())
}

/// What the keys of a device's requests that are not final begin with.
pub(crate) fn pending_of(device: DeviceKey) -> Key {
    append(all_pending(), device.as_bytes())
}

/// What the keys of all requests that are not final begin with.
pub(crate) fn all_pending() -> Key {
    Builder::of(Table::Pending).end()
}

/// An action request.
pub(crate) fn action(id: ActionId) -> Key {
    Builder::of(Table::Action).bytes(id.as_bytes()).end()
}

/// That a customer has an action request of a protocol in a status.
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

/// What the keys of a customer's action requests of a protocol in a status begin with.
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

/// That a device has an action request of a protocol in a status.
pub(crate) fn action_of_device(
    device: DeviceKey,
    protocol: Protocol,
    status: Status,
    id: ActionId,
) -> Key {
    append(actions_of_device(device, protocol, status), id.as_bytes())
}

/// What the keys of a device's action requests of a protocol in a status begin with.
pub(crate) fn actions_of_device(device: DeviceKey, protocol: Protocol, status: Status) -> Key {
    Builder::of(Table::ActionOfDevice)
        .bytes(device.as_bytes())
        .byte(code::of_protocol(protocol))
        .byte(code::of_status(status))
        .end()
}

/// That an action request is final.
pub(crate) fn final_action(id: ActionId) -> Key {
    append(final_actions(), id.as_bytes())
}

/// What the keys of final action requests begin with; their order is that of creation.
pub(crate) fn final_actions() -> Key {
    Builder::of(Table::Final).end()
}
