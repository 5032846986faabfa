//! Which operations show and set the networks of a customer? The OpenAPI descriptions.

use engine::limits::NETWORKS_MAX;

use crate::api::openapi::{ApiOperation, Schema, Tag};

/// GET.
pub(in crate::api) fn show() -> ApiOperation {
    ApiOperation::new(
        "getNetworks",
        Tag::Customers,
        "Get the networks of a customer",
    )
    .description("Returns the networks in which the devices of the customer have their addresses.")
    .answer(
        200,
        networks("Networks"),
        "The networks. Empty if none are set.",
    )
}

/// PUT.
pub(in crate::api) fn set() -> ApiOperation {
    let text = "Sets the networks of a customer, in CIDR notation. From then on a device of the \
                customer with an `ip` outside of them is refused with 400, and one of another \
                customer inside of them with 409 `ADDRESS_IN_USE`. An empty list removes the \
                networks: then its devices may have any address that is in no network of another \
                customer.";
    ApiOperation::new(
        "setNetworks",
        Tag::Customers,
        "Set the networks of a customer",
    )
    .description(text)
    .json(networks("NewNetworks"), "All networks of the customer.")
    .answer(200, networks("Networks"), "The networks, each once.")
    .refusal(
        409,
        &["NETWORK_IN_USE", "DEVICES_OUTSIDE"],
        "A network overlaps with one of another customer, or a device of the customer has an \
         address outside.",
    )
}

fn networks(name: &'static str) -> Schema {
    let four = r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)/(3[0-2]|[12]?\d)$";
    let six = r"^[0-9A-Fa-f:.]{2,45}/(12[0-8]|1[01]\d|[1-9]?\d)$";
    let network = Schema::any_of([Schema::text().pattern(four), Schema::text().pattern(six)]);
    let networks = Schema::list(network.example("10.20.0.0/16")).many(0..=NETWORKS_MAX as u64);
    Schema::closed()
        .must(
            "networks",
            networks,
            "The networks. No bit behind a prefix is set.",
        )
        .named(name)
}
