//! How does the firmware update of a device proceed in a step? Its row in the campaign, the counts
//! of the campaign and the record of the device change in one batch.

use std::ops::Range;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::coap::transfer::UploadPosition;
use protocol::lwm2m::operation::{self, PlannedWrite};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::formats::WriteMethod;
use protocol::lwm2m::payload::{Reading, Scope};
use protocol::lwm2m::value::Value;

use super::Step;
use crate::action::Protocol;
use crate::change::Expect;
use crate::device::exchange::{ExchangeRequest, ExchangeTarget};
use crate::device::formats::AttemptState;
use crate::device::samples::newest;
use crate::device::update::{
    FirmwareReport, OBJECT, OngoingUpdate, UpdateEnd, UpdateProgress, UpdateRequest, instance,
    version_in,
};
use crate::effect::{Effect, Outbound};
use crate::firmware::campaign::{CampaignDevice, NewUpdate};
use crate::firmware::update::{FirmwareUpdate, UpdateImage, UpdateState, UpdateStep};
use crate::firmware::{ImageRange, ImageUnreadable};
use crate::ids::CampaignId;
use crate::peer::Transport;
use crate::query::devices::FIRMWARE_VERSION;
use crate::step_event::ExchangeOutcome;

impl Step<'_> {
    /// Begins the update of a campaign. The same command may come again: its answer may be lost.
    pub(in crate::device) fn begin_update(&mut self, new: NewUpdate) {
        let NewUpdate { update, row } = new;
        let ongoing = self.cx.update.as_deref().map(|it| &it.update);
        if ongoing.is_some_and(|it| (it.campaign, it.place) == (update.campaign, update.place)) {
            return;
        }
        self.cx.out.push(Effect::Expect(Expect::CampaignDevice {
            campaign: update.campaign,
            place: update.place,
            row: Box::new(row),
        }));
        let obstacle = match ongoing {
            Some(_) => Some("another campaign updates the device"),
            None => self.no_firmware_object(),
        };
        let state = match obstacle {
            Some(_) => UpdateState::Skipped,
            None => update.step.state(),
        };
        self.save_update(&update, UpdateState::Pending, (state, obstacle));
        if obstacle.is_none() {
            *self.cx.update = Some(Box::new(OngoingUpdate::new(update)));
            self.save_record();
            self.begin_next();
        }
    }

    /// Ends the update of a campaign that ended before the device did. A request in flight stays,
    /// because nothing else may be requested before it is answered; its answer is ignored.
    pub(in crate::device) fn end_update(&mut self, campaign: CampaignId, end: UpdateEnd) {
        let ongoing = self.cx.update.as_deref().map(|it| &it.update);
        let Some(update) = ongoing.filter(|it| it.campaign == campaign) else {
            return;
        };
        let (state, why) = match (update.step, end) {
            // It may have been told to install the image.
            (UpdateStep::Applies | UpdateStep::Installs | UpdateStep::Verifies, _) => {
                let why = "the campaign ended before the device reported the result";
                (UpdateState::Failed, why)
            }
            (_, UpdateEnd::Cancelled) => (UpdateState::Skipped, "the campaign was cancelled"),
            (_, UpdateEnd::TimeOver) => (UpdateState::Failed, "the time of the campaign was over"),
        };
        self.conclude_update(state, Some(why));
        self.begin_next();
    }

    /// Ends the update because the device is removed.
    pub(in crate::device) fn retire_update(&mut self) {
        if let Some(ongoing) = self.cx.update.take() {
            let ended = (UpdateState::Failed, Some("the device was removed"));
            self.save_update(&ongoing.update, ongoing.saved, ended);
        }
    }

    /// The next request of the update.
    pub(super) fn next_update_request(&mut self) -> Option<(ExchangeTarget, Message)> {
        let ongoing = self.cx.update.as_deref()?;
        let campaign = ongoing.update.campaign;
        ongoing.due(self.cx.now())?;
        if let Some(why) = self.no_firmware_object() {
            self.conclude_update(UpdateState::Skipped, Some(why));
            return None;
        }
        let Some(message) = self.update_message(campaign, AttemptState::default()) else {
            let why = "the device supports no format in which it can be requested";
            self.conclude_update(UpdateState::Skipped, Some(why));
            return None;
        };
        self.update_of(campaign)?.note_requested();
        Some((ExchangeTarget::Update(campaign), message))
    }

    /// The message of the next request, without the formats that were refused; none if the campaign
    /// has ended.
    pub(super) fn update_message(
        &mut self,
        campaign: CampaignId,
        attempt: AttemptState,
    ) -> Option<Message> {
        let ongoing = self.update_of(campaign)?;
        let request = ongoing.request();
        let uri = match request {
            UpdateRequest::Offer => ongoing.uri().to_owned(),
            UpdateRequest::Read
            | UpdateRequest::ReadVersion
            | UpdateRequest::Clear
            | UpdateRequest::ClearPackage
            | UpdateRequest::Push
            | UpdateRequest::Apply => String::new(),
        };
        let label = self.observations.label(&mut self.cx);
        let codec = self.cx.codec();
        let resource = |id| instance().child(id).expect("an instance has resources");
        match request {
            UpdateRequest::Read | UpdateRequest::ReadVersion => {
                let path = path_read(request);
                let format = codec.format_to_read(path, attempt.refused.formats);
                Some(operation::read(label, codec.root(), path, format))
            }
            UpdateRequest::Clear | UpdateRequest::Offer => {
                let value = Value::String(uri);
                let planned = codec.planned_write(resource(1), &value, attempt.refused)?;
                Some(operation::write(label, codec.root(), planned))
            }
            UpdateRequest::ClearPackage | UpdateRequest::Push => {
                let format = ContentFormat::OCTET_STREAM;
                if attempt.refused.formats.has(format) {
                    return None;
                }
                // A single zero byte is the empty image (resource 0).
                let is_empty = request == UpdateRequest::ClearPackage;
                let planned = PlannedWrite {
                    method: WriteMethod::Replace,
                    target: resource(0),
                    format,
                    payload: is_empty.then_some(0).into_iter().collect(),
                };
                Some(operation::write(label, codec.root(), planned))
            }
            UpdateRequest::Apply => Some(operation::execute(label, codec.root(), resource(2), "")),
        }
    }

    /// The length of the image that the next request of the update writes, and where it begins.
    pub(super) fn upload_of(&mut self, target: ExchangeTarget) -> Option<(usize, UploadPosition)> {
        let size = self.cx.rules().limits.block;
        match target {
            ExchangeTarget::Update(of) => self.update_of(of)?.upload(size),
            ExchangeTarget::Action(_)
            | ExchangeTarget::Observation(_)
            | ExchangeTarget::Report(_)
            | ExchangeTarget::Notification(_)
            | ExchangeTarget::Bootstrap => None,
        }
    }

    /// Begins to write the image, once its first block is read.
    pub(super) fn begin_upload(
        &mut self,
        outgoing: ExchangeRequest,
        message: Message,
        body: (usize, UploadPosition),
    ) {
        self.exchange
            .begin_upload(&mut self.cx, outgoing, message, body);
        if let Some(wanted) = self.exchange.wanted() {
            self.read_image(wanted);
        }
    }

    /// Has a part of the image read, for [`Self::take_image`].
    pub(super) fn read_image(&mut self, wanted: Range<usize>) {
        let update = self.cx.update.as_deref().map(|it| &it.update);
        if let Some(UpdateImage::Stored { image, .. }) = update.map(|it| &it.image) {
            let range = ImageRange {
                image: *image,
                from: wanted.start as u64,
                bytes: wanted.len(),
            };
            self.cx.out.push(Effect::Send(Outbound::ReadImage(range)));
        }
    }

    /// Sends a part of the image. One that cannot be read, or only once the device sleeps, is read
    /// again later.
    pub(in crate::device) fn take_image(&mut self, read: Result<Vec<u8>, ImageUnreadable>) {
        let wanted = self.exchange.wanted().map(|it| it.len());
        let is_reachable = self.cx.reachability().is_reachable(self.cx.now());
        match read {
            Ok(block) if is_reachable && wanted == Some(block.len()) => self.send_block(&block),
            Ok(_) | Err(ImageUnreadable) => {
                self.exchange
                    .note_ending(ExchangeOutcome::NotAnswered, self.cx.out);
                let campaign = self.exchange.campaign();
                self.end_exchange();
                if let Some(campaign) = campaign {
                    self.update_unanswered(campaign);
                }
            }
        }
    }

    /// Notes how much of the image the device acknowledged.
    pub(super) fn note_pushed(&mut self) {
        if let Some(position) = self.exchange.position()
            && let Some(campaign) = self.exchange.campaign()
            && let Some(ongoing) = self.update_of(campaign)
        {
            ongoing.pushed(position);
            let noted = Outbound::NoteTransferred {
                campaign: ongoing.update.campaign,
                place: ongoing.update.place,
                bytes: position.bytes as u64,
            };
            self.cx.out.push(Effect::Send(noted));
        }
    }

    /// Whether the image in flight keeps anything else waiting: it is long, and goes on after that.
    pub(super) fn is_push_in_the_way(&self) -> bool {
        self.exchange.position().is_some()
            && (self.queue.next(&self.cx).is_some() || self.observations.has_requests())
    }

    /// Takes the answer to a request of the update.
    pub(super) fn update_answered(&mut self, campaign: CampaignId, answer: &Message) {
        let now = self.cx.now();
        let Some(request) = self.update_of(campaign).map(|it| it.request()) else {
            return;
        };
        let scope = Scope::Within(path_read(request));
        let values = match self.cx.codec().values_in(now, scope, answer) {
            Ok(read) => newest(&read.measurements),
            Err(_) => Reading::default(),
        };
        let mut report = FirmwareReport::of(&values);
        let peer = self.cx.registration.bound_peer();
        report.support.has_dtls = peer.is_some_and(|it| it.transport == Transport::Coaps);
        let uris = &self.cx.rules().downloads;
        let Some(ongoing) = self.update_of(campaign) else {
            return;
        };
        let progress = match request {
            UpdateRequest::Read => ongoing.reported(now, &report, uris),
            UpdateRequest::ReadVersion => ongoing.version_read(now, version_in(&values)),
            UpdateRequest::Clear
            | UpdateRequest::ClearPackage
            | UpdateRequest::Offer
            | UpdateRequest::Push
            | UpdateRequest::Apply => ongoing.accepted(now),
        };
        self.take_progress(progress);
    }

    /// Takes that the device refused a request of the update.
    pub(super) fn update_refused(&mut self, campaign: CampaignId, refusal: (Code, &str)) {
        let now = self.cx.now();
        if let Some(ongoing) = self.update_of(campaign) {
            let progress = ongoing.refused(now, refusal);
            self.take_progress(progress);
        }
    }

    /// Takes that a request of the update was not answered.
    pub(super) fn update_unanswered(&mut self, campaign: CampaignId) {
        let now = self.cx.now();
        if let Some(ongoing) = self.update_of(campaign) {
            ongoing.unanswered(now);
        }
    }

    /// The device was heard, or its registration is new.
    pub(super) fn release_update(&mut self) {
        if let Some(ongoing) = self.cx.update.as_deref_mut() {
            ongoing.release();
        }
    }

    /// The device registered, perhaps because it restarted.
    pub(super) fn note_registered_for_update(&mut self) {
        if let Some(ongoing) = self.cx.update.as_deref_mut() {
            let progress = ongoing.note_registered();
            self.take_progress(progress);
        }
    }

    /// The device registered or updated its registration.
    pub(super) fn hasten_update(&mut self) {
        let in_flight = self.exchange.campaign();
        if let Some(ongoing) = self.cx.update.as_deref_mut()
            && in_flight != Some(ongoing.update.campaign)
        {
            ongoing.hasten();
        }
    }

    /// A request that is due waits for the device to be heard, if the device cannot be reached.
    pub(super) fn hold_back_update(&mut self) {
        let now = self.cx.now();
        if !self.cx.reachability().is_reachable(now)
            && let Some(ongoing) = self.cx.update.as_deref_mut()
            && ongoing.due(now).is_some()
        {
            ongoing.hold_back();
        }
    }

    fn take_progress(&mut self, progress: UpdateProgress) {
        let now = self.cx.now();
        match progress {
            UpdateProgress::Same => {}
            UpdateProgress::Moved => self.save_step(None),
            UpdateProgress::Succeeded => self.conclude_update(UpdateState::Succeeded, None),
            UpdateProgress::Skipped(why) => {
                self.conclude_update(UpdateState::Skipped, Some(&why));
            }
            UpdateProgress::Unknown(why) => self.conclude_update(UpdateState::Failed, Some(&why)),
            UpdateProgress::Failed(why) => {
                let ongoing = self.cx.update.as_deref_mut();
                match ongoing.is_some_and(|it| it.try_again(now)) {
                    true => self.save_step(Some(&why)),
                    false => self.conclude_update(UpdateState::Failed, Some(&why)),
                }
            }
        }
    }

    /// Saves a step of the update with the record of the device.
    fn save_step(&mut self, why: Option<&str>) {
        let Some(ongoing) = self.cx.update.as_deref_mut() else {
            return;
        };
        let update = ongoing.update.clone();
        let state = update.step.state();
        let was = std::mem::replace(&mut ongoing.saved, state);
        self.save_update(&update, was, (state, why));
        self.save_record();
    }

    /// Ends the update.
    fn conclude_update(&mut self, state: UpdateState, why: Option<&str>) {
        if let Some(ongoing) = self.cx.update.take() {
            self.save_update(&ongoing.update, ongoing.saved, (state, why));
            self.save_record();
        }
    }

    fn save_update(
        &mut self,
        update: &FirmwareUpdate,
        was: UpdateState,
        (state, why): (UpdateState, Option<&str>),
    ) {
        let has_image = match state {
            UpdateState::Downloaded | UpdateState::Updating | UpdateState::Succeeded => true,
            UpdateState::Pending
            | UpdateState::Transferring
            | UpdateState::Failed
            | UpdateState::Skipped => false,
        };
        let row = CampaignDevice {
            device: self.cx.registration.identity().device(),
            state,
            bytes: update
                .image_bytes()
                .filter(|_| has_image)
                .unwrap_or_default(),
            reason: why.map(Into::into),
            updated_at: self.cx.now(),
        };
        let at = (update.campaign, update.place);
        self.cx.out.save_campaign_device(at, was, row);
    }

    /// Why the device cannot be updated, if it has said what it has.
    fn no_firmware_object(&self) -> Option<&'static str> {
        let registration = self.cx.registration.registration();
        match registration {
            Some(it) if it.links.object(OBJECT).is_none() => {
                Some("the device has no object 5 (firmware update)")
            }
            Some(_) => None,
            None if self.cx.registration.has_used(Protocol::Lwm2m) => None,
            None => Some("the device never registered over LwM2M"),
        }
    }

    /// Whether the request in flight must not be repeated: its campaign has ended, or the device
    /// was told to install the image and registered since. It may have restarted, and would take
    /// the same message for another.
    pub(super) fn is_outdated_for_update(&self) -> bool {
        let ongoing = self.cx.update.as_deref();
        self.exchange.campaign().is_some_and(|campaign| {
            ongoing.is_none_or(|it| it.update.campaign != campaign || it.registered_since_told())
        })
    }

    /// The update, while it is that of this campaign.
    fn update_of(&mut self, campaign: CampaignId) -> Option<&mut OngoingUpdate> {
        let ongoing = self.cx.update.as_deref_mut();
        ongoing.filter(|it| it.update.campaign == campaign)
    }
}

/// What a request reads; the other requests have answers without values.
fn path_read(request: UpdateRequest) -> Path {
    match request {
        UpdateRequest::ReadVersion => FIRMWARE_VERSION,
        UpdateRequest::Read
        | UpdateRequest::Clear
        | UpdateRequest::ClearPackage
        | UpdateRequest::Offer
        | UpdateRequest::Push
        | UpdateRequest::Apply => instance(),
    }
}
