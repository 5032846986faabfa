//! Which operations store firmware images and run campaigns? The OpenAPI descriptions.

use engine::firmware::campaign::CampaignState;
use engine::firmware::update::{DeliveryMethod, UpdateState};
use engine::limits::{CAMPAIGN_CONCURRENCY_MAX, FIRMWARE_URI_CHARACTERS_MAX, UPDATE_RETRIES_MAX};

use crate::api::devices::described::filter;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

const OCTETS: &str = "application/octet-stream";

const STATE_IS_WRONG: &str = "The campaign is not in a state in which that is possible.";

/// POST an image.
pub(in crate::api) fn create_image() -> ApiOperation {
    let summary = "Store a firmware image";
    ApiOperation::new("createFirmwareImage", Tag::Firmware, summary)
        .description(
            "The body is the image. It is written to disk while it arrives; when the response is \
             sent, it is durable. An upload that breaks off leaves nothing.",
        )
        .query("name", names::label(), "A name for people.")
        .query("version", names::label(), "The version of the firmware.")
        .body(vec![(OCTETS, Schema::text())], "The image.")
        .faults(&["UNKNOWN_PARAMETER"])
        .answer(201, image(), "The stored image.")
        .answer_header(201, "Location", Schema::text(), "The path of the image.")
        .leads_to(
            201,
            &["getFirmwareImage", "deleteFirmwareImage"],
            &[("image", "$response.body#/id")],
        )
        .refusal(
            408,
            &["BODY_TOO_SLOW"],
            "The body arrives too slowly: less than 1 KiB a second.",
        )
        .refusal(
            409,
            &["IMAGE_QUOTA"],
            "The images of the customer would take more than its quota.",
        )
}

/// GET all images.
pub(in crate::api) fn list_images() -> ApiOperation {
    let operation = ApiOperation::new("listFirmwareImages", Tag::Firmware, "List firmware images")
        .description("The images of the customer, newest first.");
    paged(operation).answer(200, page_of(image()), "A page of images.")
}

/// GET one image.
pub(in crate::api) fn show_image() -> ApiOperation {
    ApiOperation::new("getFirmwareImage", Tag::Firmware, "Get a firmware image")
        .description("Its name, version, length and SHA-256, not its bytes.")
        .answer(200, image(), "The image.")
}

/// DELETE an image.
pub(in crate::api) fn delete_image() -> ApiOperation {
    let summary = "Delete a firmware image";
    ApiOperation::new("deleteFirmwareImage", Tag::Firmware, summary)
        .description("Also removes its bytes from the disk. Campaigns that have ended stay.")
        .answer_empty(204, "The image is deleted.")
        .refusal(
            409,
            &["IMAGE_IN_USE"],
            "A campaign that has not ended uses the image.",
        )
}

/// POST a campaign.
pub(in crate::api) fn create_campaign() -> ApiOperation {
    let text = "Has devices get an image and install it (LwM2M object 5): the stored image \
                `imageId`, which devices get from this service, or one at `url`. The devices are \
                those in `deviceIds`, or those that match `filter` when the campaign is created. \
                They begin in that order.\n\nA device is given the URI (`/5/0/1`) and \
                downloads, or is sent the image (`/5/0/0`), and is then told to install \
                (`/5/0/2`). Its state is read \
                at each registration and update, and meanwhile at growing intervals. An image is \
                installed at most once by a device, unless `retries` permits another try.\n\nThe \
                campaign ends when every device has ended, at the latest at `notAfter`. The newest \
                100 campaigns are kept.";
    let summary = "Create a firmware campaign";
    ApiOperation::new("createFirmwareCampaign", Tag::Firmware, summary)
        .description(text)
        .json(new_campaign(), "The campaign to create.")
        .answer(201, campaign(), "The created campaign.")
        .answer_header(201, "Location", Schema::text(), "The path of the campaign.")
        .leads_to(
            201,
            &[
                "getFirmwareCampaign",
                "listFirmwareCampaignDevices",
                "pauseFirmwareCampaign",
                "resumeFirmwareCampaign",
                "cancelFirmwareCampaign",
            ],
            &[("campaign", "$response.body#/id")],
        )
        .faults(&["TOO_BROAD", "TOO_MANY_DEVICES"])
        .once(
            &["TOO_MANY_CAMPAIGNS"],
            "the customer has 100 campaigns, and none of them has ended.",
        )
}

/// GET all campaigns.
pub(in crate::api) fn list_campaigns() -> ApiOperation {
    let summary = "List firmware campaigns";
    let operation = ApiOperation::new("listFirmwareCampaigns", Tag::Firmware, summary)
        .description("The campaigns of the customer, newest first.");
    paged(operation).answer(200, page_of(campaign()), "A page of campaigns.")
}

/// GET one campaign.
pub(in crate::api) fn show_campaign() -> ApiOperation {
    let summary = "Get a firmware campaign";
    ApiOperation::new("getFirmwareCampaign", Tag::Firmware, summary)
        .description("Poll it for the progress of the campaign.")
        .answer(200, campaign(), "The campaign.")
}

/// GET the devices of a campaign.
pub(in crate::api) fn campaign_devices() -> ApiOperation {
    let summary = "List the devices of a firmware campaign";
    let operation = ApiOperation::new("listFirmwareCampaignDevices", Tag::Firmware, summary)
        .description("The devices in the order in which they begin.");
    paged(operation).answer(200, page_of(device()), "A page of the devices.")
}

/// POST pause.
pub(in crate::api) fn pause() -> ApiOperation {
    let summary = "Pause a firmware campaign";
    ApiOperation::new("pauseFirmwareCampaign", Tag::Firmware, summary)
        .description("No further device begins; those under way go on.")
        .answer(200, campaign(), "The campaign is paused.")
        .refusal(409, &["CAMPAIGN_STATE"], STATE_IS_WRONG)
}

/// POST resume.
pub(in crate::api) fn resume() -> ApiOperation {
    let summary = "Resume a firmware campaign";
    ApiOperation::new("resumeFirmwareCampaign", Tag::Firmware, summary)
        .description(
            "Devices begin again. After `HALTED`, the failures until now no longer count for \
             `haltAtFailedPercent`.",
        )
        .answer(200, campaign(), "The campaign is running.")
        .refusal(409, &["CAMPAIGN_STATE"], STATE_IS_WRONG)
}

/// POST cancel.
pub(in crate::api) fn cancel() -> ApiOperation {
    let summary = "Cancel a firmware campaign";
    ApiOperation::new("cancelFirmwareCampaign", Tag::Firmware, summary)
        .description(
            "No further device begins, and none that has not been told to install the image is \
             told so any more.",
        )
        .answer(200, campaign(), "The campaign is cancelled.")
        .refusal(409, &["CAMPAIGN_STATE"], STATE_IS_WRONG)
}

/// GET the bytes of an image.
pub(in crate::api) fn send() -> ApiOperation {
    let summary = "Download the image of a firmware campaign";
    ApiOperation::new("downloadFirmware", Tag::Firmware, summary)
        .description(
            "For devices, which are given the path: while the campaign has not ended, whoever \
             knows it may download the image. Supports `Range`, `If-Range` and `If-None-Match`.",
        )
        .answer_in(200, vec![(OCTETS, Schema::text())], "The image.")
        .answer_header(200, "ETag", Schema::text(), "The SHA-256 of the image.")
        .answer_in(
            206,
            vec![(OCTETS, Schema::text())],
            "The part of the image.",
        )
        .answer_empty(304, "The caller has the image.")
        .refusal(
            416,
            &["RANGE_NOT_SATISFIABLE"],
            "The part is behind the end of the image.",
        )
        .answer_header(
            416,
            "Content-Range",
            Schema::text(),
            "The length of the image.",
        )
}

fn image() -> Schema {
    Schema::object()
        .must("id", Schema::uuid(), "The id of the image.")
        .must("size", Schema::count(), "Its length, in bytes.")
        .must(
            "sha256",
            Schema::text().pattern("^[0-9a-f]{64}$"),
            "The SHA-256 of its bytes.",
        )
        .may("name", names::label(), "A name for people.")
        .may("version", names::label(), "The version of the firmware.")
        .must("created", names::instant(), "When the image was stored.")
        .named("FirmwareImage")
}

fn new_campaign() -> Schema {
    let stored = Schema::closed().must("imageId", Schema::uuid(), IMAGE_ID);
    let elsewhere = Schema::closed().must("url", url(), URL);
    let named = |image: Schema| {
        let devices = Schema::list(names::device_id()).at_least_one().unique();
        rules(image.must("deviceIds", devices, "The devices."))
    };
    let matching = |image: Schema| {
        let why = "The conditions of `listDevices`.";
        rules(image.must("filter", filter(), why))
    };
    let cases = [
        named(stored.clone()).titled("Stored image, named devices"),
        matching(stored).titled("Stored image, devices that match"),
        named(elsewhere.clone()).titled("Image elsewhere, named devices"),
        matching(elsewhere).titled("Image elsewhere, devices that match"),
    ];
    Schema::one_of(cases).named("NewFirmwareCampaign")
}

fn rules(schema: Schema) -> Schema {
    schema
        .may("method", Schema::word::<DeliveryMethod>(), METHOD)
        .must("concurrency", concurrency(), CONCURRENCY)
        .may("ratePerMinute", Schema::whole(1..=1_000_000), RATE)
        .may("retries", retries(), RETRIES)
        .may("canaryPercent", Schema::whole(1..=100), CANARY)
        .may("haltAtFailedPercent", Schema::whole(1..=100), HALT)
        .may("notBefore", names::log_time(), NOT_BEFORE)
        .may("notAfter", names::log_time(), NOT_AFTER)
}

fn campaign() -> Schema {
    let state = "`RUNNING`: devices begin. `PAUSED`: a caller paused it. `HALTED`: too many \
                 devices failed. `DONE`: every device has ended, or `notAfter` has passed. \
                 `CANCELLED`: a caller cancelled it.";
    let mut counts = Schema::object();
    for (word, why) in [
        ("PENDING", "Devices that have not begun."),
        (
            "TRANSFERRING",
            "Devices that are to get the image, or get it.",
        ),
        ("DOWNLOADED", "Devices that have the image."),
        ("UPDATING", "Devices that install the image."),
        ("SUCCEEDED", "Devices that run the image."),
        ("FAILED", "Devices that do not."),
        ("SKIPPED", "Devices that were not given the image."),
    ] {
        counts = counts.must(word, Schema::count(), why);
    }
    Schema::object()
        .must("id", Schema::uuid(), "The id of the campaign.")
        .must("state", Schema::word::<CampaignState>(), state)
        .may("imageId", Schema::uuid(), IMAGE_ID)
        .may("url", url(), URL)
        .must("method", Schema::word::<DeliveryMethod>(), METHOD)
        .must("concurrency", concurrency(), CONCURRENCY)
        .may("ratePerMinute", Schema::whole(1..=1_000_000), RATE)
        .must("retries", retries(), RETRIES)
        .may("canaryPercent", Schema::whole(1..=100), CANARY)
        .may("haltAtFailedPercent", Schema::whole(1..=100), HALT)
        .may("notBefore", names::instant(), NOT_BEFORE)
        .must("notAfter", names::instant(), NOT_AFTER)
        .must("created", names::instant(), "When it was created.")
        .must("devices", Schema::count(), "How many devices it has.")
        .must("counts", counts, "How many devices are in each state.")
        .named("FirmwareCampaign")
}

fn device() -> Schema {
    let bytes = "How much of the image it is known to have. While it is `TRANSFERRING`: what it \
                 acknowledged of a `PUSH`, or was given of a download from this service; after a \
                 restart of the service 0 until it goes on.";
    Schema::object()
        .must("deviceId", names::device_id(), "The device.")
        .must("state", Schema::word::<UpdateState>(), "Its state.")
        .must("bytes", Schema::count(), bytes)
        .may("reason", Schema::text(), "Why it is in this state.")
        .must("updated", names::instant(), "Since when.")
        .named("FirmwareCampaignDevice")
}

fn concurrency() -> Schema {
    Schema::whole(1..=u64::from(CAMPAIGN_CONCURRENCY_MAX)).example(10_u64)
}

fn retries() -> Schema {
    Schema::whole(0..=u64::from(UPDATE_RETRIES_MAX))
}

fn url() -> Schema {
    let uri = "https://firmware.example.com/meter-1.5.bin";
    Schema::text_of(1..=FIRMWARE_URI_CHARACTERS_MAX).example(uri)
}

const IMAGE_ID: &str = "The stored image.";

const URL: &str = "Where devices download the image: an http, https, coap or coaps URI.";

const METHOD: &str = "How devices get the image: `PULL`, from a URI that they are given; `PUSH`, \
                      by a block-wise Write, only of a stored image; `AUTO`, as the device says in \
                      `/5/0/9` and `/5/0/8`: a stored image by `PULL` if it can reach this service \
                      so, or else by `PUSH`.";

const CONCURRENCY: &str = "The most devices under way at a time.";

const RATE: &str = "The most devices that begin within a minute.";

const RETRIES: &str = "How often a device that failed tries again.";

const CANARY: &str = "So many percent of the devices have to end before the others begin.";

const HALT: &str = "The campaign halts when so many percent of its devices have failed; while the \
                    canary is under way, of those.";

const NOT_BEFORE: &str = "No device begins before (UTC).";

const NOT_AFTER: &str = "When the campaign ends, whatever became of its devices (UTC). Default: 14 \
                         days after it begins.";
