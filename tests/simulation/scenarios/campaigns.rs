//! Firmware campaigns: who begins, what is installed, and how a campaign ends, whatever crashes.

use engine::firmware::campaign::{CampaignCommand, CampaignRules, CampaignState};
use engine::firmware::update::UpdateState;
use engine::ids::CampaignId;
use engine::moment::Timestamp;
use harness::device::SimulatedDevice;
use harness::device::resource::{AnswerMode as Manner, FIRMWARE_UPDATE};
use protocol::coap::block::BlockSize;

use super::{HOUR, MINUTE, S, World};
use crate::laws::campaigns;
use crate::settings::{Faults, WorldSettings};

#[test]
fn an_image_is_not_installed_again_after_a_restart() {
    let mut world = updatable(1);
    // The device installs the image, and its answer never reaches the service.
    world.answers(FIRMWARE_UPDATE, Manner::AcknowledgeOnly);
    let id = world.create_campaign(&[0], rules(&world));
    for _ in 0..30 {
        world.pass(S);
        world.restart();
    }
    world.pass(HOUR);
    assert_eq!(world.installations(0), 1);
    assert_eq!(world.states(id), [UpdateState::Succeeded]);
    assert_eq!(world.campaign_state(id), CampaignState::Done);
}

#[test]
fn a_device_without_power_during_the_download_gets_the_image_in_another_try() {
    let mut world = updatable(1);
    let id = world.create_campaign(
        &[0],
        CampaignRules {
            retries: 1,
            ..rules(&world)
        },
    );
    world.pass(S / 2);
    assert_eq!(world.states(id), [UpdateState::Transferring]);
    world.does(0, "is rebooted", SimulatedDevice::reboot);
    world.pass(HOUR);
    assert_eq!(world.states(id), [UpdateState::Succeeded]);
    assert_eq!(world.installations(0), 1);
}

#[test]
fn a_device_without_power_during_the_installation_is_told_to_install_again_within_its_retries() {
    let answered = (Manner::Piggybacked, UpdateState::Updating);
    let unanswered = (Manner::AcknowledgeOnly, UpdateState::Downloaded);
    let cases = [
        (answered, 0, 1, UpdateState::Failed),
        (answered, 1, 2, UpdateState::Succeeded),
        (unanswered, 0, 1, UpdateState::Failed),
        (unanswered, 1, 2, UpdateState::Succeeded),
    ];
    for ((manner, told), retries, installations, state) in cases {
        let mut world = updatable(1);
        world.answers(FIRMWARE_UPDATE, manner);
        let rules = CampaignRules {
            retries,
            ..rules(&world)
        };
        let id = world.create_campaign(&[0], rules);
        while world.installations(0) == 0 || world.states(id) != [told] {
            world.pass(S / 10);
        }
        world.does(0, "is rebooted", SimulatedDevice::reboot);
        world.restart();
        world.pass(HOUR);
        assert_eq!(world.installations(0), installations);
        assert_eq!(world.states(id), [state]);
        assert_eq!(world.campaign_state(id), CampaignState::Done);
    }
}

#[test]
fn an_image_is_pushed_whole_whatever_is_lost_and_whoever_restarts() {
    let mut settings = WorldSettings::still(12);
    settings.rules.limits.block = BlockSize::MIN;
    let mut world = updatable_in(settings);
    world.faults = Faults {
        lost_percent: 20,
        repeated_percent: 20,
        late_percent: 5,
        unread_percent: 10,
        ..Faults::NONE
    };
    let pushed: Vec<usize> = (0..12).filter(|who| who % 3 == 2).collect();
    // The eighth and the sixteenth image are the longest.
    let ids: Vec<CampaignId> = (0..16)
        .map(|_| {
            let rules = CampaignRules {
                retries: 3,
                ..rules(&world)
            };
            let id = world.create_campaign(&pushed, rules);
            for who in pushed.iter().copied().cycle().take(3) {
                world.pass(3 * S);
                world.does(who, "is rebooted", SimulatedDevice::reboot);
                world.crash();
            }
            world.pass(HOUR);
            id
        })
        .collect();
    world.faults = Faults::NONE;
    world.pass(25 * HOUR);
    assert!(world.census.image_parts_sent > 100);
    let succeeded = |id: &CampaignId| world.count(*id, UpdateState::Succeeded);
    assert!(ids.iter().map(succeeded).sum::<u32>() > 0);
    for id in ids {
        assert_eq!(world.campaign_state(id), CampaignState::Done);
    }
}

#[test]
fn a_campaign_ends_and_its_failure_limit_is_not_overshot_by_more_than_the_concurrency() {
    let mut world = updatable(20);
    for who in 0..20 {
        world.fails(who, (5, 1));
    }
    let id = world.create_campaign(
        &(0..20).collect::<Vec<_>>(),
        CampaignRules {
            concurrency: 3,
            halt_at_failed_percent: Some(20),
            ..rules(&world)
        },
    );
    world.pass(HOUR);
    assert_eq!(world.campaign_state(id), CampaignState::Halted);
    let failed = world.count(id, UpdateState::Failed);
    assert!((4..4 + 3).contains(&failed), "{failed}");

    // A caller accepts the failures.
    for who in 0..20 {
        world.fails(who, (0, 1));
    }
    world.command_campaign(id, CampaignCommand::Resume);
    world.pass(S);
    world.command_campaign(id, CampaignCommand::Pause);
    world.pass(S);
    assert_eq!(world.campaign_state(id), CampaignState::Paused);
    world.restart();
    let waiting = world.count(id, UpdateState::Pending);
    world.pass(HOUR);
    assert_eq!(world.count(id, UpdateState::Pending), waiting);
    world.command_campaign(id, CampaignCommand::Resume);
    world.pass(HOUR);
    assert_eq!(world.campaign_state(id), CampaignState::Done);
    assert_eq!(world.count(id, UpdateState::Failed), failed);
    assert_eq!(world.count(id, UpdateState::Succeeded), 20 - failed);
}

#[test]
fn the_canary_of_a_campaign_goes_first() {
    let mut world = updatable(10);
    world.switch_off(0);
    let id = world.create_campaign(
        &(0..10).collect::<Vec<_>>(),
        CampaignRules {
            concurrency: 10,
            canary_percent: Some(20),
            ..rules(&world)
        },
    );
    world.pass(HOUR);
    assert_eq!(world.count(id, UpdateState::Pending), 8);
    world.switch_on(0);
    world.pass(HOUR);
    assert_eq!(world.count(id, UpdateState::Succeeded), 10);
}

#[test]
fn a_cancelled_campaign_stops_its_devices_wherever_they_are() {
    let mut world = updatable(6);
    for who in [0, 1] {
        world.switch_off(who);
    }
    let id = world.create_campaign(&(0..6).collect::<Vec<_>>(), rules(&world));
    world.pass(S);
    world.command_campaign(id, CampaignCommand::Cancel);
    world.pass(S / 100);
    world.restart();
    world.pass(S);
    world.command_campaign(id, CampaignCommand::Cancel);
    world.pass(MINUTE);
    assert_eq!(world.campaign_state(id), CampaignState::Cancelled);
    campaigns::a_campaign_ends(&world.disk.durable).expect("it ended");
}

#[test]
fn a_campaign_of_ten_thousand_devices_ends_whatever_fails() {
    let devices = 10_000;
    let mut world = updatable(devices);
    world.faults = Faults {
        lost_percent: 5,
        repeated_percent: 5,
        late_percent: 1,
        slow_commit_percent: 1,
        unread_percent: 1,
        ..Faults::NONE
    };
    for who in 0..devices {
        match who % 50 {
            0 => world.fails(who, (5, 1)),
            1 => world.fails(who, (0, 8)),
            _ => {}
        }
    }
    let everybody: Vec<usize> = (0..devices).collect();
    let id = world.create_campaign(
        &everybody,
        CampaignRules {
            concurrency: 1_000,
            retries: 1,
            canary_percent: Some(1),
            halt_at_failed_percent: Some(10),
            not_after: Timestamp::from_ms(world.now_ms).plus_ms(2 * HOUR),
            ..rules(&world)
        },
    );
    for round in 0..40 {
        world.pass(5 * S);
        for place in 0..25 {
            let who = (round * 131 + place * 397) % devices;
            world.does(who, "is rebooted", SimulatedDevice::reboot);
        }
        if round % 4 == 0 {
            world.crash();
        }
    }
    world.faults = Faults::NONE;
    world.pass(3 * HOUR);
    assert_eq!(world.campaign_state(id), CampaignState::Done);
    let succeeded = world.count(id, UpdateState::Succeeded);
    assert!(succeeded > 9_000, "{succeeded}");
    campaigns::a_campaign_ends(&world.disk.durable).expect("it ended");
}

/// A still world with registered devices that have a firmware object.
fn updatable(devices: usize) -> World {
    updatable_in(WorldSettings::still(devices))
}

fn updatable_in(settings: WorldSettings) -> World {
    let devices = settings.devices;
    let mut world = World::with(WorldSettings {
        firmware_percent: 100,
        ..settings
    });
    for who in 0..devices {
        world.switch_on(who);
        world.pass(10);
    }
    world.pass(MINUTE);
    world
}

/// A day, in which many devices are updated at a time.
fn rules(world: &World) -> CampaignRules {
    CampaignRules {
        concurrency: 100,
        rate_per_minute: None,
        retries: 0,
        canary_percent: None,
        halt_at_failed_percent: None,
        not_before: None,
        not_after: Timestamp::from_ms(world.now_ms).plus_ms(24 * HOUR),
    }
}

impl World {
    fn campaign_state(&self, id: CampaignId) -> CampaignState {
        let campaign = self.disk.durable.campaign(id);
        campaign.expect("a campaign is kept").state
    }

    fn states(&self, id: CampaignId) -> Vec<UpdateState> {
        self.disk.durable.campaign_states(id).collect()
    }

    fn count(&self, id: CampaignId, state: UpdateState) -> u32 {
        self.disk.durable.campaign_counts(id).of(state)
    }

    /// The results of the next download and installation of a device.
    fn fails(&mut self, who: usize, (download, install): (u8, u8)) {
        let machine = &mut self.fleet.member_mut(who).machine;
        machine.update_with_results(download, install);
    }
}
