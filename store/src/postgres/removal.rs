//! Which rows are removed that only the server knows: those of an owner?
//!
//! Each removal is a few statements in the transaction of its group, after everything that the
//! group put before.

use engine::ids::{CampaignId, ClientId, CustomerId, DestinationId, DeviceKey, Iccid, JobId};
use engine::limits::CAMPAIGN_ROWS_COMMITTED;

use super::cell::Parameter;
use super::pipeline::Pipeline;
use super::sql_types::SqlId;

/// The action requests of a customer that one batch removes. The caller commits again.
const ACTIONS_REMOVED_AT_ONCE: i64 = 64;

/// Something that is removed with all that belongs to it.
#[derive(Clone, Debug)]
pub(super) enum Removal {
    /// Some action requests of a customer.
    Actions(CustomerId),
    /// The counts of a campaign.
    CampaignCounts(CampaignId),
    /// Some devices of a campaign.
    CampaignDevices(CampaignId),
    /// An API client with its tokens.
    Client(ClientId),
    /// A customer with its API clients, tokens, settings and destinations; its definitions, its log
    /// and its events are marked removed.
    Customer(CustomerId),
    /// A destination of a customer; its progress is marked removed.
    Destination(CustomerId, DestinationId),
    /// A device with its names, state, values, SMS and pending action requests; its history is
    /// marked removed.
    Device(DeviceKey),
    /// The parts of a job, which are marked removed.
    JobParts(JobId),
    /// A SIM that a device no longer has: its log is found by it as long as there is one.
    Sim {
        /// The device.
        device: DeviceKey,
        /// The SIM.
        iccid: Iccid,
    },
}

/// Counts removed action requests out.
const COUNT_OUT: &str = "INSERT INTO action_count (customer, protocol, status, slot, count) \
     SELECT customer, protocol, status, $2::bigint, -count(*) FROM gone GROUP BY 1, 2, 3 \
     ON CONFLICT (customer, protocol, status, slot) \
     DO UPDATE SET count = action_count.count + excluded.count";

impl Removal {
    /// Adds the statements of the removal. Events have numbers up to `newest`.
    pub(super) fn add_to(&self, pipeline: &mut Pipeline<'_>, slot: u8, newest: i64) {
        match self {
            Self::Actions(customer) => pipeline.add(
                format!(
                    "WITH gone AS (DELETE FROM action WHERE id IN (SELECT id FROM action \
                     WHERE customer = $1 ORDER BY protocol, status, id \
                     LIMIT {ACTIONS_REMOVED_AT_ONCE}) \
                     RETURNING customer, protocol, status) {COUNT_OUT}"
                ),
                vec![text(customer.as_str()), number(slot)],
            ),
            Self::CampaignCounts(campaign) => pipeline.add(
                "DELETE FROM campaign_device_count WHERE campaign = $1",
                vec![id(campaign.as_bytes())],
            ),
            Self::CampaignDevices(campaign) => pipeline.add(
                format!(
                    "DELETE FROM campaign_device WHERE campaign = $1 AND place IN (SELECT place \
                     FROM campaign_device WHERE campaign = $1 ORDER BY place \
                     LIMIT {CAMPAIGN_ROWS_COMMITTED})"
                ),
                vec![id(campaign.as_bytes())],
            ),
            Self::Client(client) => {
                for statement in [
                    "DELETE FROM access_token WHERE client = $1",
                    "DELETE FROM api_client WHERE id = $1",
                ] {
                    pipeline.add(statement, vec![text(client.as_str())]);
                }
            }
            Self::Customer(customer) => remove_customer(customer, newest, pipeline),
            Self::Destination(customer, destination) => pipeline.add(
                "WITH gone AS (DELETE FROM destination WHERE id = $1 AND customer = $2 \
                 RETURNING id) INSERT INTO removed_destination SELECT id FROM gone \
                 ON CONFLICT DO NOTHING",
                vec![id(destination.as_bytes()), text(customer.as_str())],
            ),
            Self::Device(device) => remove_device(*device, slot, pipeline),
            Self::JobParts(job) => pipeline.add(
                "INSERT INTO removed_job VALUES ($1) ON CONFLICT DO NOTHING",
                vec![id(job.as_bytes())],
            ),
            Self::Sim { device, iccid } => pipeline.add(
                "INSERT INTO former_sim (customer, iccid, device, last_entry) \
                 SELECT d.customer, $2, d.key, e.id FROM device d CROSS JOIN LATERAL \
                 (SELECT id FROM log_entry WHERE device = d.key AND customer = d.customer \
                 ORDER BY id DESC LIMIT 1) e WHERE d.key = $1 \
                 ON CONFLICT (customer, iccid, device) \
                 DO UPDATE SET last_entry = excluded.last_entry",
                vec![id(device.as_bytes()), text(iccid.as_str())],
            ),
        }
    }
}

fn remove_customer(customer: &CustomerId, newest: i64, pipeline: &mut Pipeline<'_>) {
    for statement in [
        "DELETE FROM access_token WHERE client IN \
         (SELECT id FROM api_client WHERE customer = $1)",
        "DELETE FROM api_client WHERE customer = $1",
        "DELETE FROM setting WHERE customer = $1",
        "DELETE FROM customer_bootstrap_config WHERE customer = $1",
        "WITH gone AS (DELETE FROM definition WHERE customer = $1 RETURNING record) \
         INSERT INTO removed_definition (record) SELECT record FROM gone",
        "WITH gone AS (DELETE FROM destination WHERE customer = $1 RETURNING id) \
         INSERT INTO removed_destination SELECT id FROM gone ON CONFLICT DO NOTHING",
        "DELETE FROM customer WHERE id = $1",
    ] {
        pipeline.add(statement, vec![text(customer.as_str())]);
    }
    // A later customer with the same id begins behind what is there now.
    pipeline.add(
        "INSERT INTO removed_customer (customer, last_entry, last_event) \
         SELECT $1, coalesce((SELECT id FROM log_entry WHERE customer = $1 \
         ORDER BY id DESC LIMIT 1), '00000000-0000-0000-0000-000000000000'), $2 \
         ON CONFLICT (customer) DO UPDATE SET \
         last_entry = greatest(removed_customer.last_entry, excluded.last_entry), \
         last_event = excluded.last_event",
        vec![text(customer.as_str()), Box::new(newest)],
    );
}

/// Removes a device under its current names: they may have changed since the caller read them.
fn remove_device(device: DeviceKey, slot: u8, pipeline: &mut Pipeline<'_>) {
    let key = || vec![id(device.as_bytes())];
    for statement in [
        "INSERT INTO former_sim (customer, iccid, device, last_entry) \
         SELECT d.customer, convert_from(n.name, 'UTF8'), d.key, e.id FROM device d \
         JOIN device_name n ON n.device = d.key AND n.kind = 1 CROSS JOIN LATERAL \
         (SELECT id FROM log_entry WHERE device = d.key AND customer = d.customer \
         ORDER BY id DESC LIMIT 1) e WHERE d.key = $1 \
         ON CONFLICT (customer, iccid, device) DO UPDATE SET last_entry = excluded.last_entry",
        "INSERT INTO removed_history (device, last_event) \
         SELECT device, sequence FROM event WHERE device = $1 ORDER BY sequence DESC LIMIT 1 \
         ON CONFLICT (device) DO UPDATE SET last_event = excluded.last_event",
        "DELETE FROM sms USING device d WHERE d.key = $1 AND sms.device_number = d.number",
        "DELETE FROM device_name WHERE device = $1",
        "DELETE FROM device_tag WHERE device = $1",
        "DELETE FROM device_state WHERE device = $1",
        "DELETE FROM device_bootstrap_config WHERE device = $1",
        "DELETE FROM bootstrap WHERE device = $1",
        "DELETE FROM known_value WHERE device = $1",
        "DELETE FROM device WHERE key = $1",
    ] {
        pipeline.add(statement, key());
    }
    // The machine of the device has ended those it knew of, and a later device with the same key
    // must not inherit another one.
    pipeline.add(
        format!(
            "WITH gone AS (DELETE FROM action WHERE device = $1 AND status <= 2 \
             RETURNING customer, protocol, status) {COUNT_OUT}"
        ),
        vec![id(device.as_bytes()), number(slot)],
    );
}

fn id<'a>(bytes: &[u8; 16]) -> Parameter<'a> {
    Box::new(SqlId(*bytes))
}

fn text<'a>(text: &str) -> Parameter<'a> {
    Box::new(text.to_owned())
}

fn number<'a>(number: impl Into<i64>) -> Parameter<'a> {
    Box::new(number.into())
}
