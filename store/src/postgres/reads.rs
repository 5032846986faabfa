//! The queries, a file for each kind of caller.
//!
//! The column `record` of a table has what the writer of the same name in `store/src/record` wrote,
//! for example `action.record` what `write_action` did. Not named for their table: `device.record`
//! (`write_profile`), `device_state.record` (`row_of`), `known_value.record` (`write_known`),
//! `definition.record` (`write_text`), `log_entry.record` (`write_entry`, which is not linked) and
//! `log_entry.payload` (`write_payload`), `pending_retry.record` (`write_retry`),
//! `dead_letter.record` (`write_dead`), `bootstrap.record` (`write_bootstrap`), configurations
//! (`write_config`), firmware tables (`write_image`, `write_campaign`, `write_campaign_device`).
//! Numbers of `u64` are stored as the `bigint` of the same bits; none that is compared by size is
//! that large.

mod deliveries;
mod devices;
mod directory;
mod firmware;
mod jobs;
mod sms;
