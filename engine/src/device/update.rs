//! The firmware update of a device: what it is requested next, and what its answers mean (LwM2M
//! Core 1.1 appendix E.6).
//!
//! ```text
//!           state 0: Write /5/0/1      state 2: Execute /5/0/2      accepted
//!  Offers ------------------> Downloads ----------> Applies ------------> Installs
//!   ^ |                        ^ |                   ^ |\                    | registered
//!   | '--> Pushes -------------' |                   | | '--------------.    v
//!   |      Write /5/0/0          |      retries left | |   registered    '-> Verifies
//!   |                            |                   '-+---------------------| state 2
//!   '------ retries left --------+---- result >= 2 ----+---------------------+--> FAILED
//!                                                      '--- result 1 --------+--> SUCCEEDED
//! ```
//!
//! The state is read, not observed: at each registration and update, and meanwhile at growing
//! intervals. A lost answer delays a read, and nothing else is lost. After a restart of either side
//! the next read says how far the device is. The image is applied only in answer to a state that
//! says that the device has it and was not told yet to install it.
//!
//! A device may restart while it installs, and then have neither state nor result. The version of
//! its firmware (`/3/0/3`) is read before it is told to install the image, and again if it comes
//! back in state 0 or 1 without a result: another version is that of the image. If it is still in
//! state 2, it did not install the image, and to tell it again is another try. That counts also if
//! it never answered that it installs the image: devices restart before their answer leaves.
//!
//! A Write of the image that breaks off goes on where it stood, if the device still has what it
//! acknowledged. Otherwise the device answers 4.08, and the Write begins anew.

use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::transfer::UploadPosition;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Reading;
use protocol::lwm2m::value::Value;

use crate::firmware::delivery::{DeliverySupport, DownloadUris, ImageDelivery};
use crate::firmware::update::{FirmwareUpdate, UpdateState, UpdateStep};
use crate::limits::{
    FIRMWARE_VERSION_BYTES_MAX, PUSHES_LOST_MAX, UPDATE_READ_MS, UPDATE_READ_MS_MAX,
};
use crate::moment::Timestamp;
use crate::query::devices::FIRMWARE_VERSION;

/// The object of firmware updates.
pub(super) const OBJECT: u16 = 5;

/// The wait before another try: a device that failed may have to free memory, or find its network.
const RETRY_MS: i64 = 60_000;

/// How a campaign ended before the device did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UpdateEnd {
    /// A caller cancelled it.
    Cancelled,
    /// Its time is over.
    TimeOver,
}

/// An update in progress.
pub(super) struct OngoingUpdate {
    /// What is stored of it.
    pub(super) update: FirmwareUpdate,
    /// The state in its row of the campaign.
    pub(super) saved: UpdateState,
    /// What the device is requested next.
    next: UpdateRequest,
    /// When; without a time, at the next uplink.
    at: Option<Timestamp>,
    /// The wait before the next read.
    wait_ms: i64,
    /// How the device gets the image, once that is known.
    delivery: Option<ImageDelivery>,
    /// How much of the image the device acknowledged; not stored, because it must not cost a write
    /// for each block.
    pushed: Option<UploadPosition>,
    /// Whether the Write in flight began behind the beginning of the image.
    is_continued: bool,
    /// How often the device lost what it had acknowledged.
    pushes_lost: u8,
    /// Whether the device registered since the last read, or may have done so before the service
    /// began: it may have restarted.
    may_have_restarted: bool,
    /// Whether the device may have been told to install the image, in step [`UpdateStep::Applies`].
    may_be_told: bool,
    /// Why the device refused to install the image, until its state is read: it may have installed
    /// the image, and received the request again.
    install_refused: Option<String>,
}

/// What a device is requested for its update.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UpdateRequest {
    /// Read what the object says.
    Read,
    /// Read the version of the firmware.
    ReadVersion,
    /// Write an empty URI, which ends an earlier download.
    Clear,
    /// Write an empty image, which does the same on a device that does not download.
    ClearPackage,
    /// Write the URI.
    Offer,
    /// Write the image, block by block.
    Push,
    /// Execute the update.
    Apply,
}

/// What follows from an answer of the device.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum UpdateProgress {
    /// Nothing that has to be saved.
    Same,
    /// The step changed.
    Moved,
    /// This try failed.
    Failed(String),
    /// This try failed, and there must be no other: the device may run the image.
    Unknown(String),
    /// The device cannot be given the image.
    Skipped(String),
    /// The device runs the image.
    Succeeded,
}

/// What the object of a device says.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct FirmwareReport {
    /// `/5/0/3`: 0 idle, 1 downloading, 2 downloaded, 3 updating.
    state: Option<i64>,
    /// `/5/0/5`: 0 none yet, 1 success, others are failures.
    result: i64,
    /// `/5/0/8` and `/5/0/9`.
    pub(super) support: DeliverySupport,
}

impl OngoingUpdate {
    /// An update that begins, or is restored: the first read says how far the device is.
    pub(super) fn new(update: FirmwareUpdate) -> Self {
        Self {
            saved: update.step.state(),
            update,
            next: UpdateRequest::Read,
            at: Some(Timestamp::default()),
            wait_ms: UPDATE_READ_MS,
            delivery: None,
            pushed: None,
            is_continued: false,
            pushes_lost: 0,
            may_have_restarted: true,
            may_be_told: true,
            install_refused: None,
        }
    }

    /// What the device is to be requested now.
    pub(super) fn due(&self, now: Timestamp) -> Option<UpdateRequest> {
        let is_due = self.at.is_some_and(|at| at <= now);
        is_due.then_some(self.next)
    }

    /// When it is to be requested something.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        self.at
    }

    /// The request in flight, if there is one.
    pub(super) fn request(&self) -> UpdateRequest {
        self.next
    }

    /// The URI that the device is given.
    pub(super) fn uri(&self) -> &str {
        match &self.delivery {
            Some(ImageDelivery::Pull(uri)) => uri,
            Some(ImageDelivery::Push) | None => "",
        }
    }

    /// The image that the next request writes, its length and where the Write begins: at the
    /// beginning in blocks of this size, or where an earlier one stood.
    pub(super) fn upload(&mut self, size: BlockSize) -> Option<(usize, UploadPosition)> {
        let bytes = match self.next {
            UpdateRequest::Push => self.update.image_bytes()?,
            UpdateRequest::Read
            | UpdateRequest::ReadVersion
            | UpdateRequest::Clear
            | UpdateRequest::ClearPackage
            | UpdateRequest::Offer
            | UpdateRequest::Apply => return None,
        };
        let from = self.pushed.unwrap_or(UploadPosition { bytes: 0, size });
        self.is_continued = from.bytes > 0;
        Some((usize::try_from(bytes).ok()?, from))
    }

    /// The device acknowledged so much of the image.
    pub(super) fn pushed(&mut self, position: UploadPosition) {
        self.pushed = Some(position);
    }

    /// The next request leaves.
    pub(super) fn note_requested(&mut self) {
        self.may_be_told |= self.next == UpdateRequest::Apply;
    }

    /// The device registered: it may have restarted. Its record is saved with the registration.
    pub(super) fn note_registered(&mut self) -> UpdateProgress {
        self.may_have_restarted = true;
        match self.update.step {
            UpdateStep::Applies if self.may_be_told => {
                self.update.step = UpdateStep::Verifies;
                UpdateProgress::Moved
            }
            UpdateStep::Installs => {
                self.update.step = UpdateStep::Verifies;
                UpdateProgress::Same
            }
            UpdateStep::Offers
            | UpdateStep::Pushes
            | UpdateStep::Downloads
            | UpdateStep::Applies
            | UpdateStep::Verifies => UpdateProgress::Same,
        }
    }

    /// Whether the device registered since the request in flight told it to install the image.
    pub(super) fn registered_since_told(&self) -> bool {
        self.next == UpdateRequest::Apply && self.update.step == UpdateStep::Verifies
    }

    /// The device registered or updated its registration.
    pub(super) fn hasten(&mut self) {
        self.at = Some(Timestamp::default());
        self.wait_ms = UPDATE_READ_MS;
    }

    /// The device was heard.
    pub(super) fn release(&mut self) {
        self.at.get_or_insert_default();
    }

    /// The device cannot be requested anything before it is heard.
    pub(super) fn hold_back(&mut self) {
        self.at = None;
    }

    /// A request was not answered: the state is read before anything is repeated.
    pub(super) fn unanswered(&mut self, now: Timestamp) {
        self.read_later(now);
    }

    /// Takes what the object of the device says. Images are downloaded from these URIs.
    pub(super) fn reported(
        &mut self,
        now: Timestamp,
        report: &FirmwareReport,
        uris: &DownloadUris,
    ) -> UpdateProgress {
        use UpdateStep::{Applies, Downloads, Installs, Offers, Pushes, Verifies};
        let Some(state) = report.state else {
            self.read_later(now);
            return UpdateProgress::Failed("the device does not say its state (/5/0/3)".into());
        };
        let may_have_restarted = std::mem::take(&mut self.may_have_restarted);
        let install_refused = self.install_refused.take();
        match (self.update.step, state, report.result) {
            (Offers, 3, _) => self.wait(now),
            (Offers, ..) => self.choose_delivery(state, report, uris),
            // A restart ended the download, and the device does not remember it.
            (Downloads, 0, 0) if may_have_restarted => self.choose_delivery(state, report, uris),
            // A result may be one of an earlier update.
            (Pushes, 0 | 1, _) => self.request_now(UpdateRequest::Push),
            (Applies | Installs | Verifies, 0..=2, 1) => UpdateProgress::Succeeded,
            (Downloads | Applies | Installs | Verifies, 0..=2, 2..)
                if report.result != DEFERRED =>
            {
                UpdateProgress::Failed(failure(report.result))
            }
            (Pushes | Downloads, 2, _) => self.request_now(UpdateRequest::ReadVersion),
            (Pushes | Downloads | Applies, 3, _) => {
                self.update.step = Installs;
                self.read_later(now);
                UpdateProgress::Moved
            }
            (Applies | Verifies, 2, 0) => match install_refused {
                Some(why) => UpdateProgress::Failed(why),
                None if self.update.step == Verifies => self.install_again(),
                None => self.request_now(UpdateRequest::Apply),
            },
            (Applies | Verifies, 0 | 1, 0) => self.request_now(UpdateRequest::ReadVersion),
            (Pushes | Downloads | Applies | Installs | Verifies, ..) => self.wait(now),
        }
    }

    /// Takes the version of the firmware, if the device says it: before it is told to install the
    /// image, or after it restarted and has no result.
    pub(super) fn version_read(
        &mut self,
        now: Timestamp,
        version: Option<Box<str>>,
    ) -> UpdateProgress {
        match self.update.step {
            UpdateStep::Pushes | UpdateStep::Downloads => {
                self.update.version_before = version;
                self.install()
            }
            UpdateStep::Applies | UpdateStep::Verifies => {
                match (&self.update.version_before, version) {
                    (Some(before), Some(version)) if *before != version => {
                        UpdateProgress::Succeeded
                    }
                    (Some(_), Some(_)) => {
                        let why = "the device has neither the image nor another version (/3/0/3)";
                        UpdateProgress::Failed(why.into())
                    }
                    (None, _) | (_, None) => {
                        let why = "the device has no result (/5/0/5 is 0), and its version \
                                   (/3/0/3) does not tell whether it installed the image";
                        UpdateProgress::Unknown(why.into())
                    }
                }
            }
            UpdateStep::Offers | UpdateStep::Installs => self.wait(now),
        }
    }

    /// Has the device install the image that it still has, if it may try again.
    fn install_again(&mut self) -> UpdateProgress {
        match self.update.retries_left.checked_sub(1) {
            None => {
                let why = "the device restarted before it had installed the image";
                UpdateProgress::Failed(why.into())
            }
            Some(left) => {
                self.update.retries_left = left;
                self.install()
            }
        }
    }

    /// Has the device install the image that it has.
    fn install(&mut self) -> UpdateProgress {
        self.update.step = UpdateStep::Applies;
        self.may_be_told = false;
        self.request_now(UpdateRequest::Apply);
        UpdateProgress::Moved
    }

    /// Decides how the device gets the image. An earlier one is cleared first.
    fn choose_delivery(
        &mut self,
        state: i64,
        report: &FirmwareReport,
        uris: &DownloadUris,
    ) -> UpdateProgress {
        match report.support.delivery_of(&self.update, uris) {
            Err(why) => return UpdateProgress::Skipped(why),
            Ok(delivery) => self.delivery = Some(delivery),
        }
        match (state, report.support.methods) {
            (0, _) => self.deliver(),
            (_, Some(1)) => self.request_now(UpdateRequest::ClearPackage),
            (..) => self.request_now(UpdateRequest::Clear),
        }
    }

    /// Gives the device the image, or the URI.
    fn deliver(&mut self) -> UpdateProgress {
        match &self.delivery {
            Some(ImageDelivery::Pull(_)) => self.request_now(UpdateRequest::Offer),
            Some(ImageDelivery::Push) => {
                self.update.step = UpdateStep::Pushes;
                self.pushed = None;
                self.request_now(UpdateRequest::Push);
                UpdateProgress::Moved
            }
            None => self.request_now(UpdateRequest::Read),
        }
    }

    /// Takes that the device did what was requested.
    pub(super) fn accepted(&mut self, now: Timestamp) -> UpdateProgress {
        self.wait_ms = UPDATE_READ_MS;
        match self.next {
            UpdateRequest::Read | UpdateRequest::ReadVersion => return self.wait(now),
            UpdateRequest::Clear | UpdateRequest::ClearPackage => return self.deliver(),
            UpdateRequest::Push => {
                self.update.step = UpdateStep::Downloads;
                self.request_now(UpdateRequest::Read);
            }
            UpdateRequest::Offer => {
                self.update.step = UpdateStep::Downloads;
                self.read_later(now);
            }
            UpdateRequest::Apply => {
                // Not if it registered before its answer arrived.
                if self.update.step == UpdateStep::Applies {
                    self.update.step = UpdateStep::Installs;
                }
                self.read_later(now);
            }
        }
        UpdateProgress::Moved
    }

    /// Takes that the device refused what was requested.
    pub(super) fn refused(&mut self, now: Timestamp, (code, why): (Code, &str)) -> UpdateProgress {
        match self.next {
            // A device without the resource instance may have nothing to clear.
            UpdateRequest::Clear | UpdateRequest::ClearPackage => self.deliver(),
            UpdateRequest::Push => match self.has_lost_push(code) {
                true => self.wait(now),
                false => {
                    UpdateProgress::Failed(format!("writing the image to /5/0/0 failed: {why}"))
                }
            },
            UpdateRequest::Read if self.update.step == UpdateStep::Offers => {
                let why = format!("the device does not let its object 5 be read: {why}");
                UpdateProgress::Skipped(why)
            }
            UpdateRequest::Read => UpdateProgress::Failed(format!("reading /5/0 failed: {why}")),
            UpdateRequest::Offer => {
                UpdateProgress::Failed(format!("writing the URI to /5/0/1 failed: {why}"))
            }
            UpdateRequest::ReadVersion => self.version_read(now, None),
            UpdateRequest::Apply => {
                self.install_refused = Some(format!("executing /5/0/2 failed: {why}"));
                self.request_now(UpdateRequest::Read)
            }
        }
    }

    /// Whether the refusal may only say that the device lost what it had acknowledged, so that the
    /// Write begins anew once the state is read: 4.08, or anything to a Write that was continued.
    fn has_lost_push(&mut self, code: Code) -> bool {
        let may_be_lost = code == Code::REQUEST_ENTITY_INCOMPLETE || self.is_continued;
        self.pushed = None;
        self.pushes_lost = self.pushes_lost.saturating_add(1);
        may_be_lost && self.pushes_lost <= PUSHES_LOST_MAX
    }

    /// Begins another try, if there is one left. Returns whether there is.
    pub(super) fn try_again(&mut self, now: Timestamp) -> bool {
        let Some(left) = self.update.retries_left.checked_sub(1) else {
            return false;
        };
        self.update.retries_left = left;
        self.update.step = UpdateStep::Offers;
        self.pushed = None;
        self.pushes_lost = 0;
        self.install_refused = None;
        self.next = UpdateRequest::Read;
        self.wait_ms = UPDATE_READ_MS;
        self.at = Some(now.plus_ms(RETRY_MS));
        true
    }

    fn wait(&mut self, now: Timestamp) -> UpdateProgress {
        self.read_later(now);
        UpdateProgress::Same
    }

    fn read_later(&mut self, now: Timestamp) {
        self.next = UpdateRequest::Read;
        self.at = Some(now.plus_ms(self.wait_ms));
        self.wait_ms = (self.wait_ms * 2).min(UPDATE_READ_MS_MAX);
    }

    fn request_now(&mut self, request: UpdateRequest) -> UpdateProgress {
        self.next = request;
        self.at = Some(Timestamp::default());
        UpdateProgress::Same
    }
}

impl FirmwareReport {
    /// What the values of the object say.
    pub(super) fn of(values: &Reading) -> Self {
        let mut report = Self::default();
        for (path, value) in values {
            let Some(number) = integer(value) else {
                continue;
            };
            match path.resource_id() {
                Some(3) => report.state = Some(number),
                Some(5) => report.result = number,
                Some(8) => report.support.protocols.push(number),
                Some(9) => report.support.methods = Some(number),
                Some(_) | None => {}
            }
        }
        report
    }
}

/// The version of the firmware, in an answer of the device; none if the answer has none, or one
/// that is too long to be stored.
pub(super) fn version_in(values: &Reading) -> Option<Box<str>> {
    let Value::String(version) = values.get(&FIRMWARE_VERSION)? else {
        return None;
    };
    (version.len() <= FIRMWARE_VERSION_BYTES_MAX).then(|| version.as_str().into())
}

/// The path of the object instance.
pub(super) fn instance() -> Path {
    Path::instance(OBJECT, 0)
}

/// Result 11 of LwM2M 1.2: the device will update later.
const DEFERRED: i64 = 11;

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) | Value::Time(number) => Some(*number),
        Value::UnsignedInteger(number) => i64::try_from(*number).ok(),
        Value::Float(_)
        | Value::Boolean(_)
        | Value::CoreLink(_)
        | Value::ObjectLink(_)
        | Value::Opaque(_)
        | Value::String(_) => None,
    }
}

/// The values of `/5/0/5` in words.
fn failure(result: i64) -> String {
    let why = match result {
        2 => "not enough flash memory for the image",
        3 => "out of memory during the download",
        4 => "the connection was lost during the download",
        5 => "the integrity check of the image failed",
        6 => "the type of the image is not supported",
        7 => "the URI is invalid",
        8 => "the update failed",
        9 => "the protocol of the URI is not supported",
        10 => "the update was cancelled on the device",
        _ => "the device reports an unknown result",
    };
    format!("{why} (/5/0/5 is {result})")
}
