//! Decisions to disk: what survives a crash, and how it is queried.
//!
//! There is a trait for each kind of caller, and each caller holds those it needs: [`Commit`] makes
//! a batch durable, all of it or nothing; [`DeviceReads`], [`DirectoryReads`], [`DeliveryReads`],
//! [`JobReads`], [`SmsReads`] and [`FirmwareReads`] are named queries; [`Maintenance`] keeps the
//! store in order. [`Store`] is all of them. Keys and bytes exist only inside an engine's folder.
//! An engine decides nothing about the domain; every engine passes the suite in `conformance`.

mod activity;
mod backup;
mod commit;
mod commit_state;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod deliveries;
mod devices;
mod directory;
mod event_news;
mod firmware;
mod jobs;
mod maintenance;
mod meters;
mod migrate;
mod migration;
mod nodes;
mod partition_notifier;
mod partition_notifiers;
mod postgres;
mod record;
mod rekey;
pub mod sealed;
mod sled;
mod sms;

pub use crate::backup::{Backup, BackupRefused, BackupStream};
pub use crate::commit::{Commit, CommitError, Pressure, Receipt};
pub use crate::deliveries::DeliveryReads;
pub use crate::devices::{DeviceReads, RestoredPage};
pub use crate::directory::DirectoryReads;
pub use crate::event_news::EventNews;
pub use crate::firmware::FirmwareReads;
pub use crate::jobs::JobReads;
pub use crate::maintenance::{Loss, Maintenance, Retention, SWEPT_MS, SweepReport};
pub use crate::migrate::{migrate_to_embedded, migrate_to_postgres};
pub use crate::migration::{MigrationError, MigrationProgress, MigrationReport, TableTotals};
pub use crate::nodes::{DrainOutcome, Nodes};
pub use crate::partition_notifier::PartitionNotifier;
pub use crate::postgres::{
    FoundStore, InvalidPostgresUrl, NewNode, NodeDatabase, PostgresNodes, PostgresOpenError,
    PostgresOptions, PostgresStore, PostgresUrl,
};
pub use crate::record::destination::{destination_of_bytes, destination_to_bytes};
pub use crate::record::device_call::{
    device_command_of_bytes, device_command_to_bytes, device_reply_of_bytes, device_reply_to_bytes,
};
pub use crate::record::device_view::{
    association_of_bytes, association_to_bytes, strangers_of_bytes, strangers_to_bytes,
};
pub use crate::rekey::{RekeyError, RekeyReport};
pub use crate::sled::{
    BackupFault, CheckReport, Finding, OfflineStore, OpenError, Options, Problem, RestoreError,
    SledStore,
};
pub use crate::sms::SmsReads;

use std::future::Future;
use std::pin::Pin;

/// The answer to a query.
pub type ReadAnswer<T> = Pin<Box<dyn Future<Output = Result<T, Unavailable>> + Send>>;

/// The store cannot answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the store is unavailable")]
pub struct Unavailable;

/// All queries.
///
/// A query may see what was committed but is not acknowledged yet, except for those whose answers
/// are shown to callers (one request, the known names, and every list): they show only what is
/// durable, because a crash must not undo what was shown. A list is not a snapshot: what changes
/// while it is read may be missing from it, but is never shown twice.
pub trait Reads:
    DeviceReads + DirectoryReads + DeliveryReads + JobReads + SmsReads + FirmwareReads
{
}

impl<T: DeviceReads + DirectoryReads + DeliveryReads + JobReads + SmsReads + FirmwareReads> Reads
    for T
{
}

/// What survives. One value serves every thread.
pub trait Store: Commit + Reads + Maintenance {}

impl<T: Commit + Reads + Maintenance> Store for T {}
