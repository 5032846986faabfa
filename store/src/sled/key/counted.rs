//! Which counts are there of which rows? What follows the prefix of a count is what the keys of its
//! rows begin with after theirs.

use super::{Builder, Key, Table};

/// A kind of count, and the rows it counts.
pub(crate) struct CountedRows {
    /// The prefix of the keys of the counts.
    pub(crate) counts: Key,
    /// The prefix of the keys of the rows.
    pub(crate) rows: Key,
    /// How much of the rest of a row's key its count has in its own.
    pub(crate) group: Group,
}

/// The part of the rest of a key that is counted under one count; nothing if the key has another
/// form.
pub(crate) type Group = fn(&[u8]) -> Option<&[u8]>;

/// Every kind of count of which each row is one more.
pub(crate) fn all() -> [CountedRows; 6] {
    let counts = |kind| Builder::of(Table::Counter).byte(kind).end();
    let all = [
        (counts(1), Table::ActionOfCustomer, customer_and_2 as Group),
        (counts(3), Table::DeviceOfCustomer, customer),
        (counts(5), Table::DeviceOfCustomer, customer_and_1),
        (
            Table::DevicesOfTagCounted.prefix(),
            Table::DeviceOfTag,
            customer_and_tag,
        ),
        (Table::JobsCounted.prefix(), Table::JobOfCustomer, customer),
        (Table::SmsCounted.prefix(), Table::Sms, |rest| rest.get(..8)),
    ];
    all.map(|(counts, table, group)| CountedRows {
        counts,
        rows: table.prefix(),
        group,
    })
}

/// The customer, with the byte that ends it.
fn customer(rest: &[u8]) -> Option<&[u8]> {
    let length = rest.iter().position(|byte| *byte == 0)?;
    rest.get(..=length)
}

/// The customer and the flags of a device.
fn customer_and_1(rest: &[u8]) -> Option<&[u8]> {
    rest.get(..=customer(rest)?.len())
}

/// The customer, the protocol and the status of a request.
fn customer_and_2(rest: &[u8]) -> Option<&[u8]> {
    rest.get(..customer(rest)?.len() + 2)
}

/// The customer, and the key and the value of a tag, each with the byte that ends it.
fn customer_and_tag(rest: &[u8]) -> Option<&[u8]> {
    let mut ends = rest.iter().enumerate().filter(|(_, byte)| **byte == 0);
    let (last, _) = ends.nth(2)?;
    rest.get(..=last)
}

#[cfg(test)]
mod tests {
    use engine::action::{Protocol, Status};
    use engine::change::Counter;
    use engine::ids::{ActionId, CustomerId, DeviceId, JobId, SmsId};
    use engine::tags::Tag;

    use super::*;
    use crate::record::device_flags::DeviceFlags;
    use crate::sled::key::{action, counter, device, job, sms};

    #[test]
    fn the_count_of_a_row_is_found_by_its_key() {
        let customer = CustomerId::parse("acme").unwrap();
        let (protocol, status) = (Protocol::Udp, Status::Failed);
        let id = ActionId::from_bytes([7; 16]);
        let of_customer = Counter::CustomerActions {
            customer: customer.clone(),
            protocol,
            status,
        };
        let tag = Tag::parse("site:berlin").unwrap();
        let flags = DeviceFlags::every().last().unwrap();
        let listed = device::device_of(&customer, flags, &DeviceId::parse("meter").unwrap());
        let pairs = [
            (
                action::action_of_customer(&customer, protocol, status, id),
                counter(&of_customer),
            ),
            (listed.clone(), counter(&Counter::Devices(customer.clone()))),
            (listed, device::counted(&customer, flags)),
            (
                device::tagged_device(&customer, &tag, &DeviceId::parse("meter").unwrap()),
                device::tagged_counted(&customer, &tag),
            ),
            (
                job::of_customer(&customer, JobId::from_bytes([7; 16])),
                job::counted(&customer),
            ),
            (sms::sms(7, SmsId::from_number(9).unwrap()), sms::counted(7)),
        ];
        for (counted, (row, count)) in all().into_iter().zip(pairs) {
            let rest = row.strip_prefix(counted.rows.as_slice()).unwrap();
            let group = (counted.group)(rest).unwrap();
            assert_eq!([counted.counts, group.to_vec()].concat(), count);
            assert_eq!((counted.group)(&[]), None);
        }
    }
}
