//! What is a device requested for its firmware update, and what becomes of it?

use std::ops::Range;

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;

use super::vocabulary::{
    DOWNLOADS, DeviceFixture, HOME, Lines, MINUTE, OBJECTS, S, UPDATABLE, all, read as read_action,
    sent, without_record, write,
};
use crate::device::update::UpdateEnd;
use crate::firmware::ImageUnreadable;
use crate::firmware::image_key::ImageKey;
use crate::firmware::update::UpdateStep;
use crate::ids::CampaignId;
use crate::limits::PUSHES_LOST_MAX;

#[test]
fn a_device_downloads_and_installs_an_image() {
    let mut fixture = updatable();
    let begun = all([
        vec!["expect place 3 Pending".to_owned()],
        state("Pending", "Transferring", 0, ""),
        read("m1"),
    ]);
    assert_eq!(fixture.begin_update(0), begun);
    let offered = offered("m2");
    assert_eq!(reported(&mut fixture, 0, 0), offered);
    assert_eq!(
        answered(&mut fixture, Code::CHANGED),
        vec!["save place 3 Transferring 0 bytes"]
    );
    assert_eq!(later(&mut fixture, 2 * S), read("m3"));
    assert_eq!(reported(&mut fixture, 1, 0), Lines::new());
    assert_eq!(later(&mut fixture, 4 * S), read("m4"));
    let version = sent("CON GET /3/0/3 accept 0 m5");
    assert_eq!(reported(&mut fixture, 2, 0), version);
    let downloaded = all([
        state("Transferring", "Downloaded", 900, ""),
        sent("CON POST /5/0/2 m6"),
    ]);
    assert_eq!(says_version(&mut fixture, "1.4.0"), downloaded);
    let installs = state("Downloaded", "Updating", 900, "");
    assert_eq!(answered(&mut fixture, Code::CHANGED), installs);
    assert_eq!(step_of(&fixture), Some(UpdateStep::Installs));
    let registered = fixture.at(MINUTE).register_with(&["lwm2m=1.1"], UPDATABLE);
    assert_eq!(registered.last(), read("m7").last(), "it is read at once");
    let succeeded = state("Updating", "Succeeded", 900, "");
    assert_eq!(reported(&mut fixture, 0, 1), succeeded);
    assert_eq!(step_of(&fixture), None);
    assert_eq!(fixture.deadline(), Some(86_460 * S), "only its lifetime");
}

#[test]
fn an_earlier_download_is_cleared_before_the_image_is_offered() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    assert_eq!(
        reported(&mut fixture, 2, 0),
        sent("CON PUT /5/0/1 format 0 m2")
    );
    let offered = offered("m3");
    assert_eq!(answered(&mut fixture, Code::CHANGED), offered);
}

#[test]
fn a_device_that_cannot_be_updated_is_skipped() {
    let without = "the device has no object 5 (firmware update)";
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1"], OBJECTS);
    let skipped = |why: &str| {
        all([
            vec!["expect place 3 Pending".to_owned()],
            state("Pending", "Skipped", 0, why),
        ])
    };
    assert_eq!(fixture.begin_update(0), skipped(without));
    let mut fixture = DeviceFixture::new();
    let why = "the device never registered over LwM2M";
    assert_eq!(fixture.begin_update(0), skipped(why));
    let mut fixture = updatable();
    fixture.begin_update(0);
    let why = "another campaign updates the device";
    assert_eq!(fixture.begin_update_of(8, 0), skipped(why));
}

#[test]
fn a_device_that_does_not_have_the_protocol_is_skipped() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    let values = [("/5/0/3", 0), ("/5/0/8/0", 1), ("/5/0/9", 0)];
    let why = "the device downloads over no protocol by which it can reach this service (/5/0/8)";
    let skipped = without_record(fixture.answer_values("/5/0", &values));
    assert_eq!(skipped, state("Transferring", "Skipped", 0, why));
}

#[test]
fn a_failure_is_final_unless_retries_are_left() {
    let mut fixture = updatable();
    fixture.begin_update(1);
    reported(&mut fixture, 0, 0);
    answered(&mut fixture, Code::CHANGED);
    later(&mut fixture, 2 * S);
    let why = "the integrity check of the image failed (/5/0/5 is 5)";
    let failed = vec![format!("save place 3 Transferring 0 bytes: {why}")];
    assert_eq!(reported(&mut fixture, 0, 5), failed);
    assert_eq!(later(&mut fixture, MINUTE), read("m4"));
    let offered = offered("m5");
    assert_eq!(reported(&mut fixture, 0, 5), offered);
    let why = "writing the URI to /5/0/1 failed: the device answered 4.00";
    let refused = state("Transferring", "Failed", 0, why);
    assert_eq!(answered(&mut fixture, Code::BAD_REQUEST), refused);
}

#[test]
fn an_image_is_not_installed_again_after_a_restart() {
    let mut fixture = told(0);
    fixture.restart();
    assert_eq!(step_of(&fixture), Some(UpdateStep::Applies));
    assert_eq!(without_record(fixture.timeout()), read("m6"));
    let installing = state("Downloaded", "Updating", 900, "");
    assert_eq!(reported(&mut fixture, 3, 0), installing);
    fixture.restart();
    assert_eq!(without_record(fixture.timeout()), read("m7"));
    let why = "the update failed (/5/0/5 is 8)";
    let failed = state("Updating", "Failed", 0, why);
    assert_eq!(reported(&mut fixture, 2, 8), failed);
}

#[test]
fn an_order_to_install_that_was_lost_is_repeated() {
    let mut fixture = told(0);
    fixture.restart();
    fixture.timeout();
    let repeated = sent("CON POST /5/0/2 m7");
    assert_eq!(reported(&mut fixture, 2, 0), repeated);
}

#[test]
fn a_device_that_restarted_and_forgot_its_download_is_given_the_uri_again() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    reported(&mut fixture, 0, 0);
    answered(&mut fixture, Code::CHANGED);
    assert_eq!(later(&mut fixture, 2 * S), read("m3"));
    let slow = reported(&mut fixture, 0, 0);
    assert_eq!(slow, Lines::new(), "its download has not begun");
    fixture.at(MINUTE).register_with(&["lwm2m=1.1"], UPDATABLE);
    assert_eq!(reported(&mut fixture, 0, 0), offered("m5"));
    let accepted = vec!["save place 3 Transferring 0 bytes"];
    assert_eq!(answered(&mut fixture, Code::CHANGED), accepted);
}

#[test]
fn a_device_is_given_the_uri_again_if_it_restarted_while_the_service_did() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    reported(&mut fixture, 0, 0);
    answered(&mut fixture, Code::CHANGED);
    fixture.restart();
    assert_eq!(without_record(fixture.timeout()), read("m3"));
    assert_eq!(reported(&mut fixture, 0, 0), offered("m4"));
}

#[test]
fn a_device_that_restarted_before_it_installed_is_told_again_within_its_retries() {
    let mut fixture = installing(1);
    fixture.register_with(&["lwm2m=1.1"], UPDATABLE);
    assert_eq!(step_of(&fixture), Some(UpdateStep::Verifies));
    fixture.restart();
    fixture.timeout();
    let again = all([
        state("Updating", "Downloaded", 900, ""),
        sent("CON POST /5/0/2 m8"),
    ]);
    assert_eq!(reported(&mut fixture, 2, 0), again);
    let installs = state("Downloaded", "Updating", 900, "");
    assert_eq!(answered(&mut fixture, Code::CHANGED), installs);
    fixture.register_with(&["lwm2m=1.1"], UPDATABLE);
    assert_eq!(reported(&mut fixture, 3, 0), Lines::new(), "it installs");
    fixture.register_with(&["lwm2m=1.1"], UPDATABLE);
    let why = "the device restarted before it had installed the image";
    let failed = state("Updating", "Failed", 0, why);
    assert_eq!(reported(&mut fixture, 2, 0), failed);
}

#[test]
fn a_device_that_restarted_before_it_answered_is_told_again_within_its_retries() {
    let updating = state("Downloaded", "Updating", 900, "");
    let again = all([
        state("Updating", "Downloaded", 900, ""),
        sent("CON POST /5/0/2 m7"),
    ]);
    let why = "the device restarted before it had installed the image";
    let failed = state("Updating", "Failed", 0, why);
    for (retries, expected) in [(1, again), (0, failed)] {
        for restarts in [false, true] {
            let mut fixture = told(retries);
            if restarts {
                fixture.restart();
            }
            let mut registered = fixture.register_with(&["lwm2m=1.1"], UPDATABLE);
            registered.retain(|line| updating.contains(line));
            assert_eq!(registered, updating);
            assert_eq!(step_of(&fixture), Some(UpdateStep::Verifies));
            let mut lines = Lines::new();
            while lines != read("m6") {
                lines = without_record(fixture.next_deadline());
                assert!(!lines.concat().contains("/5/0/2"), "{lines:?}");
            }
            assert_eq!(reported(&mut fixture, 2, 0), expected);
        }
    }
}

#[test]
fn a_device_that_registers_before_it_is_told_to_install_loses_no_try() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    reported(&mut fixture, 0, 0);
    answered(&mut fixture, Code::CHANGED);
    later(&mut fixture, 2 * S);
    reported(&mut fixture, 2, 0);
    fixture.ask(read_action("/3/0/9"));
    says_version(&mut fixture, "1.4.0");
    fixture.register_with(&["lwm2m=1.1"], UPDATABLE);
    assert_eq!(step_of(&fixture), Some(UpdateStep::Applies));
    let told = without_record(fixture.answer(Code::CONTENT, "5"));
    assert_eq!(told.last(), sent("CON POST /5/0/2 m6").last());
}

#[test]
fn a_device_that_registered_may_answer_afterwards_that_it_installs() {
    let mut fixture = told(0);
    fixture.register_with(&["lwm2m=1.1"], UPDATABLE);
    answered(&mut fixture, Code::CHANGED);
    assert_eq!(step_of(&fixture), Some(UpdateStep::Verifies));
    assert_eq!(later(&mut fixture, 2 * S), read("m6"));
    let succeeded = state("Updating", "Succeeded", 900, "");
    assert_eq!(reported(&mut fixture, 0, 1), succeeded);
}

#[test]
fn a_device_that_restarted_without_a_result_is_judged_by_its_version() {
    let same = "the device has neither the image nor another version (/3/0/3)";
    let tries_again = all([
        vec!["count of campaign Updating -1".to_owned()],
        vec!["count of campaign Transferring +1".to_owned()],
        vec![format!("save place 3 Transferring 0 bytes: {same}")],
    ]);
    let unknown = "the device has no result (/5/0/5 is 0), and its version (/3/0/3) does not tell \
                   whether it installed the image";
    let cases = [
        (
            Code::CONTENT,
            "1.5.0",
            state("Updating", "Succeeded", 900, ""),
        ),
        (Code::CONTENT, "1.4.0", tries_again),
        (Code::NOT_FOUND, "", state("Updating", "Failed", 0, unknown)),
    ];
    for (code, version, expected) in cases {
        let mut fixture = installing(1);
        fixture.register_with(&["lwm2m=1.1"], UPDATABLE);
        let asked = sent("CON GET /3/0/3 accept 0 m7");
        assert_eq!(reported(&mut fixture, 0, 0), asked);
        let judged = without_record(fixture.answer(code, version));
        assert_eq!(judged, expected, "{version}");
    }
}

#[test]
fn a_device_that_refuses_to_install_an_image_may_have_installed_it() {
    let why = "executing /5/0/2 failed: the device answered 4.05";
    for (reports, expected) in [
        ((0, 1), state("Downloaded", "Succeeded", 900, "")),
        ((2, 0), state("Downloaded", "Failed", 0, why)),
    ] {
        let mut fixture = told(0);
        let refused = answered(&mut fixture, Code::METHOD_NOT_ALLOWED);
        assert_eq!(refused, read("m6"), "its state is read first");
        assert_eq!(reported(&mut fixture, reports.0, reports.1), expected);
    }
}

#[test]
fn a_sleeping_device_is_asked_at_its_next_uplink() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=86400", "b=U", "Q"], UPDATABLE);
    fixture.at(10 * MINUTE);
    let begun = fixture.begin_update(0);
    let waits = all([
        vec!["expect place 3 Pending".to_owned()],
        state("Pending", "Transferring", 0, ""),
    ]);
    assert_eq!(begun, waits);
    assert_eq!(fixture.deadline(), Some(86_400 * S), "nothing is due");
    let updated = fixture.at(20 * MINUTE).update();
    assert_eq!(updated.last(), read("m1").last());
}

#[test]
fn the_end_of_a_campaign_ends_the_update() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    let why = "the campaign was cancelled";
    let ended = state("Transferring", "Skipped", 0, why);
    assert_eq!(fixture.end_update(UpdateEnd::Cancelled), ended);
    assert_eq!(fixture.end_update(UpdateEnd::Cancelled), Lines::new());
    let mut fixture = updatable();
    fixture.begin_update(0);
    let why = "the time of the campaign was over";
    let ended = state("Transferring", "Failed", 0, why);
    assert_eq!(fixture.end_update(UpdateEnd::TimeOver), ended);
}

#[test]
fn a_request_of_an_ended_campaign_stays_in_flight_and_its_answer_is_for_no_other() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    fixture.end_update(UpdateEnd::Cancelled);
    let begun = all([
        vec!["expect place 3 Pending".to_owned()],
        state("Pending", "Transferring", 0, ""),
    ]);
    assert_eq!(fixture.begin_update_of(8, 0), begun, "nothing is sent");
    let answer = reported(&mut fixture, 2, 0);
    assert_eq!(answer, read("m2"), "the answer is ignored");
}

#[test]
fn a_write_of_an_image_ends_with_its_campaign_at_the_next_block() {
    let mut fixture = pushed_to(2_500);
    fixture.image(block(0..1_024));
    let why = "the campaign was cancelled";
    let ended = state("Transferring", "Skipped", 0, why);
    assert_eq!(fixture.end_update(UpdateEnd::Cancelled), ended);
    fixture.begin_update_of(8, 0);
    assert_eq!(acknowledged(&mut fixture), read("m3"));
}

#[test]
fn an_order_to_install_is_not_repeated_once_its_campaign_ended() {
    let mut fixture = told(0);
    let why = "the campaign ended before the device reported the result";
    let ended = state("Downloaded", "Failed", 0, why);
    assert_eq!(fixture.end_update(UpdateEnd::Cancelled), ended);
    fixture.ask(read_action("/3/0/9"));
    let mut lines = Lines::new();
    while lines.is_empty() {
        lines = without_record(fixture.next_deadline());
    }
    let asked = lines.iter().find(|line| line.contains("CON"));
    assert!(
        asked.is_some_and(|it| it.contains("GET /3/0/9")),
        "{lines:?}"
    );
}

#[test]
fn a_removed_device_ends_its_row() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    let removed = fixture.removed();
    let why = "the device was removed";
    let row = state("Transferring", "Failed", 0, why);
    assert!(row.iter().all(|line| removed.contains(line)), "{removed:?}");
}

#[test]
fn the_same_command_begins_an_update_once() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    assert_eq!(fixture.begin_update(0), Lines::new());
}

#[test]
fn a_device_that_does_not_answer_is_asked_again() {
    let mut fixture = updatable();
    fixture.begin_update(0);
    let mut lines = Lines::new();
    for _ in 0..12 {
        lines = without_record(fixture.next_deadline());
        if lines == read("m2") {
            return;
        }
    }
    panic!("{lines:?}");
}

#[test]
fn a_device_that_takes_images_by_push_is_sent_the_image_block_by_block() {
    let mut fixture = pushed_to(2_500);
    assert_eq!(step_of(&fixture), Some(UpdateStep::Pushes));
    let first = fixture.image(block(0..1_024));
    assert_eq!(first.len(), 1);
    assert_eq!(blocks(&fixture), (Some((0, true, 1_024)), Some(2_500)));
    assert_eq!(fixture.last_request().payload, image(0..1_024));
    assert_eq!(acknowledged(&mut fixture), has_and_reading(1_024, 1_024));
    fixture.image(block(1_024..2_048));
    assert_eq!(acknowledged(&mut fixture), has_and_reading(452, 2_048));
    fixture.image(block(2_048..2_500));
    assert_eq!(blocks(&fixture), (Some((2, false, 1_024)), None));
    let answer = fixture.piggybacked(Code::CHANGED);
    let taken = without_record(fixture.receives(HOME, &answer));
    let is_read = read("m5");
    assert_eq!(taken.last(), is_read.last(), "its state is read at once");
    assert_eq!(step_of(&fixture), Some(UpdateStep::Downloads));
    let told = has_image(&mut fixture);
    assert_eq!(told.last(), sent("CON POST /5/0/2 m7").last());
}

#[test]
fn a_device_that_wants_smaller_blocks_gets_them() {
    let mut fixture = pushed_to(2_500);
    fixture.image(block(0..1_024));
    let small = Block::new(0, More::Yes, BlockSize::of_bytes(64).unwrap());
    let early = fixture.piggybacked(Code::CONTINUE).with_block1(small);
    let next = without_record(fixture.receives(HOME, &early));
    assert_eq!(next, has_and_reading(64, 1_024));
    fixture.image(block(1_024..1_088));
    assert_eq!(blocks(&fixture).0, Some((16, true, 64)));

    let mut fixture = pushed_to(2_500);
    fixture.image(block(0..1_024));
    let late = fixture.piggybacked(Code::REQUEST_ENTITY_TOO_LARGE);
    let next = without_record(fixture.receives(HOME, &late.with_block1(small)));
    assert_eq!(next, has_and_reading(64, 0));
}

#[test]
fn a_push_that_broke_off_goes_on_where_it_stood() {
    let mut fixture = pushed_to(2_500);
    fixture.image(block(0..1_024));
    acknowledged(&mut fixture);
    fixture.image(block(1_024..2_048));
    let mut lines = Lines::new();
    for _ in 0..200 {
        lines = without_record(fixture.next_deadline());
        if lines.iter().any(|line| line.contains("CON GET /5/0 ")) {
            break;
        }
        if lines == reading(1_024, 1_024) {
            fixture.image(block(1_024..2_048));
        }
    }
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(reported(&mut fixture, 1, 0), reading(1_024, 1_024));
    fixture.image(block(1_024..2_048));
    assert_eq!(blocks(&fixture).0, Some((1, true, 1_024)));
}

#[test]
fn a_device_that_lost_its_blocks_is_sent_them_anew_a_few_times() {
    let mut fixture = pushed_to(2_500);
    for _ in 0..PUSHES_LOST_MAX {
        fixture.image(block(0..1_024));
        assert_eq!(acknowledged(&mut fixture), has_and_reading(1_024, 1_024));
        fixture.image(block(1_024..2_048));
        let lost = fixture.piggybacked(Code::REQUEST_ENTITY_INCOMPLETE);
        assert_eq!(
            without_record(fixture.receives(HOME, &lost)),
            Lines::new(),
            "its state is read first"
        );
        fixture.next_deadline();
        assert_eq!(reported(&mut fixture, 0, 0), reading(1_024, 0));
    }
    fixture.image(block(0..1_024));
    let why = "writing the image to /5/0/0 failed: the device answered 4.08";
    let failed = state("Transferring", "Failed", 0, why);
    let answer = fixture.piggybacked(Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(without_record(fixture.receives(HOME, &answer)), failed);
}

#[test]
fn a_request_of_a_caller_goes_between_two_blocks() {
    let mut fixture = pushed_to(2_500);
    fixture.image(block(0..1_024));
    fixture.ask(write("/3/0/14", "+01:00"));
    let asked = acknowledged(&mut fixture);
    assert!(
        asked.iter().any(|it| it.contains("CON PUT /3/0/14")),
        "{asked:?}"
    );
    let answer = fixture.piggybacked(Code::NOT_FOUND);
    let next = without_record(fixture.receives(HOME, &answer));
    assert!(next.contains(&reading(1_024, 1_024)[0]), "{next:?}");
}

#[test]
fn an_image_that_cannot_be_read_is_read_again_later() {
    let mut fixture = pushed_to(2_500);
    assert_eq!(fixture.image(Err(ImageUnreadable)), Lines::new());
    assert_eq!(later(&mut fixture, 2 * S), read("m2"));
    assert_eq!(reported(&mut fixture, 0, 0), reading(1_024, 0));
}

#[test]
fn an_image_that_is_read_once_the_device_sleeps_waits_for_its_next_uplink() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=86400", "b=U", "Q"], UPDATABLE);
    fixture.begin_push(2_500);
    let values = [("/5/0/3", 0), ("/5/0/5", 0), ("/5/0/9", 1)];
    fixture.answer_values("/5/0", &values);
    fixture.at(10 * MINUTE);
    assert_eq!(fixture.image(block(0..1_024)), Lines::new());
    assert_eq!(fixture.next_deadline(), Lines::new());
    assert_eq!(fixture.deadline(), Some(86_400 * S), "nothing is due");
    let updated = fixture.at(20 * MINUTE).update();
    assert_eq!(updated.last(), read("m2").last());
    let again = reported(&mut fixture, 0, 0);
    assert_eq!(again.last(), reading(1_024, 0).last());
}

#[test]
fn a_push_that_the_service_forgot_is_no_second_installation() {
    let mut fixture = pushed_to(2_500);
    fixture.image(block(0..1_024));
    fixture.restart();
    assert_eq!(step_of(&fixture), Some(UpdateStep::Pushes));
    fixture.timeout();
    // The answer to the last block was lost: the device has the whole image.
    let told = has_image(&mut fixture);
    assert!(told.last().unwrap().contains("CON POST /5/0/2"), "{told:?}");
    fixture.restart();
    fixture.timeout();
    let installs = state("Downloaded", "Updating", 2_500, "");
    assert_eq!(reported(&mut fixture, 3, 0), installs);
}

#[test]
fn an_earlier_image_is_cleared_before_another_is_sent() {
    let mut fixture = updatable();
    fixture.begin_push(2_500);
    let values = [("/5/0/3", 2), ("/5/0/9", 1)];
    let cleared = without_record(fixture.answer_values("/5/0", &values));
    assert_eq!(cleared, sent("CON PUT /5/0/0 format 42 \"\\0\" m2"));
    let pushed = answered(&mut fixture, Code::CHANGED);
    assert_eq!(pushed.last(), reading(1_024, 0).last());
}

/// A device that is told to install its image.
fn told(retries: u8) -> DeviceFixture {
    let mut fixture = updatable();
    fixture.begin_update(retries);
    reported(&mut fixture, 0, 0);
    answered(&mut fixture, Code::CHANGED);
    later(&mut fixture, 2 * S);
    let told = has_image(&mut fixture);
    assert_eq!(told.last(), sent("CON POST /5/0/2 m5").last());
    fixture
}

/// A device that has accepted to install an image, with so many retries left.
fn installing(retries: u8) -> DeviceFixture {
    let mut fixture = told(retries);
    let installs = state("Downloaded", "Updating", 900, "");
    assert_eq!(answered(&mut fixture, Code::CHANGED), installs);
    fixture
}

/// A device that is about to be sent an image.
fn pushed_to(bytes: u64) -> DeviceFixture {
    let mut fixture = updatable();
    fixture.begin_push(bytes);
    let begun = all([
        vec!["save place 3 Transferring 0 bytes".to_owned()],
        reading(1_024.min(bytes), 0),
    ]);
    let values = [("/5/0/3", 0), ("/5/0/5", 0), ("/5/0/9", 1)];
    let found = without_record(fixture.answer_values("/5/0", &values));
    assert_eq!(found, begun);
    fixture
}

fn reading(bytes: u64, from: u64) -> Lines {
    vec![format!("read {bytes} bytes of the image from {from}")]
}

/// The device has so much, and the next block is read.
fn has_and_reading(bytes: u64, from: u64) -> Lines {
    all([
        vec![format!("place 3 has {from} bytes")],
        reading(bytes, from),
    ])
}

fn image(part: Range<usize>) -> Vec<u8> {
    part.map(|at| (at % 251) as u8).collect()
}

fn block(part: Range<usize>) -> Result<Vec<u8>, ImageUnreadable> {
    Ok(image(part))
}

/// Number, whether more follow and size of the block in flight, and the length that it states.
fn blocks(fixture: &DeviceFixture) -> (Option<(u32, bool, usize)>, Option<u32>) {
    let request = fixture.last_request();
    let block = request.block1();
    let block = block.map(|it| (it.number(), it.has_more(), it.size().unwrap().bytes()));
    (block, request.size1())
}

/// The device acknowledges the block in flight and wants the next one.
fn acknowledged(fixture: &mut DeviceFixture) -> Lines {
    let block = fixture.last_request().block1().unwrap();
    let answer = fixture.piggybacked(Code::CONTINUE).with_block1(block);
    without_record(fixture.receives(HOME, &answer))
}

fn updatable() -> DeviceFixture {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=86400", "b=U"], UPDATABLE);
    fixture
}

/// The device is given the URI.
fn offered(message: &str) -> Lines {
    let (campaign, key) = (CampaignId::from_bytes([7; 16]), ImageKey::of(&[1; 16], 3));
    let uri = format!("{DOWNLOADS}/firmware/{campaign}/{key}");
    sent(&format!("CON PUT /5/0/1 format 0 {uri:?} {message}"))
}

/// The object of the device is read.
fn read(message: &str) -> Lines {
    sent(&format!("CON GET /5/0 accept 11542 {message}"))
}

/// The row and the counts change.
fn state(was: &str, is: &str, bytes: u64, why: &str) -> Lines {
    let why = match why {
        "" => String::new(),
        why => format!(": {why}"),
    };
    vec![
        format!("count of campaign {was} -1"),
        format!("count of campaign {is} +1"),
        format!("save place 3 {is} {bytes} bytes{why}"),
    ]
}

/// The device answers the read with its state and its result.
fn reported(fixture: &mut DeviceFixture, state: i64, result: i64) -> Lines {
    let values = [("/5/0/3", state), ("/5/0/5", result)];
    without_record(fixture.answer_values("/5/0", &values))
}

/// The device has the image, and says its version, which is asked for first.
fn has_image(fixture: &mut DeviceFixture) -> Lines {
    let asked = reported(fixture, 2, 0);
    let version = asked.last().map(String::as_str).unwrap_or_default();
    assert!(version.contains("CON GET /3/0/3"), "{asked:?}");
    says_version(fixture, "1.4.0")
}

/// The device answers the read with the version of its firmware.
fn says_version(fixture: &mut DeviceFixture, version: &str) -> Lines {
    without_record(fixture.answer(Code::CONTENT, version))
}

fn answered(fixture: &mut DeviceFixture, code: Code) -> Lines {
    let answer = fixture.piggybacked(code);
    without_record(fixture.receives(HOME, &answer))
}

/// The next read is due after so many milliseconds.
fn later(fixture: &mut DeviceFixture, ms: i64) -> Lines {
    let now = fixture.since_start_now();
    let lines = without_record(fixture.next_deadline());
    assert_eq!(fixture.since_start_now(), now + ms);
    lines
}

fn step_of(fixture: &DeviceFixture) -> Option<UpdateStep> {
    let update = fixture.saved_record().update.as_ref();
    update.map(|update| update.step)
}
