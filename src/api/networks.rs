//! Which handlers show and set the networks of a customer, and which addresses may its devices
//! have?
//!
//! The networks of all customers are in memory, because each new address is compared with them.

pub(super) mod described;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::customer::Customer;
use engine::directory::DirectoryRefusal;
use engine::directory::customer::put_networks;
use engine::ids::CustomerId;
use engine::limits::{DEVICES_EXAMINED_MAX, NETWORKS_MAX};
use engine::network::Network;
use engine::query::PageRequest;
use engine::query::devices::{DeviceFilter, DevicePageRequest};

use store::{Reads, Unavailable};

use super::Api;
use super::body::Json;
use super::error::{ApiError, ErrorDetail};
use super::records::settle;
use super::segment::PathSegment;

/// Customers read at a time.
const CUSTOMERS_AT_ONCE: u32 = 1_000;

/// The networks of a customer.
#[derive(Serialize)]
struct NetworksBody {
    networks: Vec<String>,
}

/// The networks of the customers that have any.
#[derive(Debug, Default)]
pub struct Networks(RwLock<BTreeMap<CustomerId, Box<[Network]>>>);

/// Why a device may not have an address.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum AddressRefusal {
    /// It is in none of the customer's networks.
    #[error("is in none of the networks of the customer: {0}")]
    Outside(String),
    /// It is in a network of another customer.
    #[error("is in a network of another customer")]
    OfAnother,
}

/// GET: shows the networks of a customer.
pub(super) async fn show(
    PathSegment(customer): PathSegment<CustomerId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let customer = known(&api, customer).await?;
    Ok(HttpResponse::Ok().json(NetworksBody::of(&customer.networks)))
}

/// PUT: sets the networks of a customer.
pub(super) async fn set(
    PathSegment(customer): PathSegment<CustomerId>,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let networks = fields.required_texts("networks", read_networks);
    let networks = fields.finish(networks)?;
    let _one = api.changing_networks.lock().await;
    let customer = known(&api, customer).await?;
    let before = api.networks.replace(&customer.id, &networks)?;
    let put = put_all(&api, &customer, &networks).await;
    if put.is_err() {
        api.networks.put(&customer.id, before);
    }
    put?;
    Ok(HttpResponse::Ok().json(NetworksBody::of(&networks)))
}

/// The networks, each once.
fn read_networks(texts: &[String]) -> Result<Vec<Network>, String> {
    if texts.len() > NETWORKS_MAX {
        return Err(format!("must have at most {NETWORKS_MAX} items"));
    }
    let read = |text: &String| Network::parse(text).map_err(|why| format!("{text:?} {why}"));
    let networks: BTreeSet<Network> = texts.iter().map(read).collect::<Result<_, _>>()?;
    Ok(networks.into_iter().collect())
}

async fn known(api: &Api, customer: CustomerId) -> Result<Customer, ApiError> {
    let known = api.store.customer(customer).await?;
    known.ok_or_else(|| DirectoryRefusal::CustomerUnknown.into())
}

/// Stores the networks, unless a device of the customer is outside. New devices are compared with
/// them already.
async fn put_all(api: &Api, customer: &Customer, networks: &[Network]) -> Result<(), ApiError> {
    if !networks.is_empty() {
        let (first, more) = outside(api, &customer.id, networks).await?;
        if let Some(first) = first {
            let why = format!("device {first} and {more} more have an address outside");
            let fault = ErrorDetail::of("DEVICES_OUTSIDE", "networks", why);
            return Err(ApiError::conflict(vec![fault]));
        }
    }
    settle(&*api.commits, async || {
        let customer = known(api, customer.id.clone()).await?;
        Ok(put_networks(customer, networks))
    })
    .await
}

/// The first device of a customer with an address outside of these networks, and how many more
/// there are.
async fn outside(
    api: &Api,
    customer: &CustomerId,
    networks: &[Network],
) -> Result<(Option<String>, u64), ApiError> {
    let (mut first, mut more) = (None, 0);
    let mut wanted = DevicePageRequest::of(PageRequest {
        number: 1,
        size: DEVICES_EXAMINED_MAX,
    });
    loop {
        let filter = DeviceFilter::all_of(customer.clone());
        let page = api.store.devices_of(filter, wanted.clone()).await??;
        let devices = page.items.iter().map(|it| &it.profile);
        let addresses = devices.filter_map(|it| Some((it, it.ip?)));
        for (device, ip) in addresses {
            if !networks.iter().any(|network| network.contains(ip)) {
                match first {
                    None => first = Some(device.device.to_string()),
                    Some(_) => more += 1,
                }
            }
        }
        wanted.after = page.next;
        if wanted.after.is_none() {
            return Ok((first, more));
        }
    }
}

impl NetworksBody {
    fn of(networks: &[Network]) -> Self {
        Self {
            networks: networks.iter().map(Network::to_string).collect(),
        }
    }
}

impl Networks {
    /// Reads the networks of all customers.
    pub async fn load(store: &dyn Reads) -> Result<Self, Unavailable> {
        let networks = Self::default();
        for number in 1.. {
            let size = CUSTOMERS_AT_ONCE;
            let page = store.customers(PageRequest { number, size }).await?;
            if page.items.is_empty() {
                break;
            }
            for customer in page.items {
                networks.put(&customer.id, customer.networks);
            }
        }
        Ok(networks)
    }

    /// Puts the networks of a customer; none removes it.
    pub fn put(&self, customer: &CustomerId, networks: Box<[Network]>) {
        let mut all = self.write();
        match networks.is_empty() {
            true => all.remove(customer),
            false => all.insert(customer.clone(), networks),
        };
    }

    /// Replaces the networks of a customer, unless they overlap with another's; returns those
    /// before.
    fn replace(
        &self,
        customer: &CustomerId,
        networks: &[Network],
    ) -> Result<Box<[Network]>, ApiError> {
        let all = self.read();
        let others = all.iter().filter(|(of, _)| *of != customer);
        let mut others = others.flat_map(|(_, networks)| networks);
        let overlap = others.find_map(|other| {
            let mut own = networks.iter();
            own.find(|network| network.overlaps(*other))
        });
        if let Some(network) = overlap {
            let why = format!("{network} overlaps with a network of another customer");
            let fault = ErrorDetail::of("NETWORK_IN_USE", "networks", why);
            return Err(ApiError::conflict(vec![fault]));
        }
        let before = all.get(customer).cloned().unwrap_or_default();
        drop(all);
        self.put(customer, networks.into());
        Ok(before)
    }

    /// Whether a device of a customer may have an address.
    pub(super) fn admit(
        &self,
        customer: &CustomerId,
        ip: Option<IpAddr>,
    ) -> Result<(), AddressRefusal> {
        let Some(ip) = ip else {
            return Ok(());
        };
        let all = self.read();
        let is_in = |networks: &[Network]| networks.iter().any(|network| network.contains(ip));
        match all.get(customer) {
            Some(own) if is_in(own) => Ok(()),
            Some(own) => {
                let own: Vec<String> = own.iter().map(Network::to_string).collect();
                Err(AddressRefusal::Outside(own.join(", ")))
            }
            None if all.values().any(|networks| is_in(networks)) => Err(AddressRefusal::OfAnother),
            None => Ok(()),
        }
    }

    /// The lock may be poisoned: a map of networks is always consistent.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<CustomerId, Box<[Network]>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<CustomerId, Box<[Network]>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<AddressRefusal> for ApiError {
    fn from(refusal: AddressRefusal) -> Self {
        match refusal {
            AddressRefusal::Outside(_) => {
                Self::invalid(vec![ErrorDetail::of("INVALID_VALUE", "ip", refusal)])
            }
            AddressRefusal::OfAnother => {
                Self::conflict(vec![ErrorDetail::of("ADDRESS_IN_USE", "ip", refusal)])
            }
        }
    }
}
