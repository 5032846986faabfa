//! What can be asked of what is kept: filters and pages.

use crate::action::{Protocol, Status};
use crate::admin_log::entry::{Category, Subject};
use crate::admin_log::window::Window;
use crate::ids::{CustomerId, DeviceKey, Iccid};

/// One page of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page<T> {
    /// What stands on it.
    pub items: Vec<T>,
    /// How many things the whole list has.
    pub total: u64,
}

/// Which page of a list is wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PageWanted {
    /// Its number, from 1.
    pub number: u32,
    /// How many things stand on one.
    pub size: u32,
}

impl PageWanted {
    /// How many things stand before the page.
    pub fn skip(&self) -> u64 {
        u64::from(self.number.saturating_sub(1)) * u64::from(self.size)
    }
}

/// Which action requests are wanted, newest first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ActionFilter {
    /// Whose.
    pub customer: CustomerId,
    /// Only those of one device.
    pub device: Option<DeviceKey>,
    /// Only those of one protocol.
    pub protocol: Option<Protocol>,
    /// Only those of one status.
    pub status: Option<Status>,
}

/// Which administration log entries are wanted, newest first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogFilter {
    /// Whose log.
    pub customer: CustomerId,
    /// From when to when.
    pub window: Window,
    /// Only those about one SIM.
    pub iccid: Option<Iccid>,
    /// Only those of one category.
    pub category: Option<Category>,
    /// Only those of one subject.
    pub subject: Option<Subject>,
}
