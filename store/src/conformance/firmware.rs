//! What is stored of firmware images and campaigns?

use engine::change::{Batch, Change, Expect};
use engine::directory::firmware::{
    creation_of, devices_of, moved, put_device, removal_of, removal_of_campaign, removal_of_devices,
};
use engine::firmware::FirmwareImage;
use engine::firmware::campaign::{
    Campaign, CampaignDevice, CampaignRules, CampaignState, ImageSource,
};
use engine::firmware::download::OfferedImage;
use engine::firmware::runner::WantedRows;
use engine::firmware::update::{DeliveryMethod, UpdateState};
use engine::ids::{CampaignId, CustomerId, DeviceId, ImageId};
use engine::query::PageRequest;

use super::samples::{acme, at, batch, customer, moment};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Store};

const ALL: PageRequest = PageRequest { number: 1, size: 9 };

pub(super) fn images_come_back(ground: &TestBed<'_>) {
    let mut store = ground.open();
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    put(&*store, vec![Change::PutCustomer(customer("globex"))]);
    let images = [10, 20].map(|second| image(&acme(), second));
    let other = image(&customer("globex").id, 15);
    for image in images.iter().chain([&other]) {
        assert_eq!(commit(&*store, creation_of(image.clone())), Ok(()));
    }
    for _ in 0..2 {
        let page = wait(store.images_of(acme(), ALL)).expect("an answer");
        assert_eq!(page.items, [images[1].clone(), images[0].clone()]);
        assert_eq!(page.total, 2);
        assert_eq!(wait(store.images()).expect("an answer").len(), 3);
        assert_eq!(wait(store.image(acme(), other.id)), Ok(None));
        drop(store);
        store = ground.open();
    }
    assert_eq!(commit(&*store, removal_of(&images[..1])), Ok(()));
    assert_eq!(wait(store.image(acme(), images[0].id)), Ok(None));
    let unknown = image(&customer("nobody").id, 30);
    let refused = commit(&*store, creation_of(unknown));
    assert_eq!(refused, Err(CommitError::Conflict));
}

pub(super) fn campaigns_come_back(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let running = made(&*store, 10, 3);
    let mut done = made(&*store, 20, 1);
    done.state = CampaignState::Done;
    put(&*store, vec![Change::PutCampaign(Box::new(done.clone()))]);
    for _ in 0..2 {
        let page = wait(store.campaigns_of(acme(), ALL)).expect("an answer");
        assert_eq!(page.items, [done.clone(), running.clone()]);
        assert_eq!(
            wait(store.open_campaigns()),
            Ok(vec![running.clone()]),
            "one has ended"
        );
        let shown = wait(store.campaign(acme(), done.id));
        assert_eq!(shown, Ok(Some(done.clone())));
        drop(store);
        store = ground.open();
    }
}

pub(super) fn the_image_of_an_open_campaign_is_offered(ground: &TestBed<'_>) {
    let store = ground.open();
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    let stored = FirmwareImage {
        id: ImageId::from_bytes([9; 16]),
        ..image(&acme(), 10)
    };
    let elsewhere = made(&*store, 10, 1);
    let mut running = made(&*store, 20, 1);
    assert_eq!(wait(store.offered_image(running.id)), Ok(None));
    assert_eq!(commit(&*store, creation_of(stored.clone())), Ok(()));
    let offered = OfferedImage {
        image: stored,
        secret: running.secret,
    };
    assert_eq!(wait(store.offered_image(running.id)), Ok(Some(offered)));
    assert_eq!(wait(store.offered_image(elsewhere.id)), Ok(None));
    running.state = CampaignState::Done;
    put(
        &*store,
        vec![Change::PutCampaign(Box::new(running.clone()))],
    );
    assert_eq!(wait(store.offered_image(running.id)), Ok(None));
}

pub(super) fn devices_are_counted_by_state(ground: &TestBed<'_>) {
    let store = ground.open();
    let campaign = made(&*store, 10, 3);
    let look = |wanted| wait(store.campaign_look(campaign.id, wanted)).expect("an answer");
    let all = look(WantedRows::PendingFrom(0));
    assert_eq!(all.counts.of(UpdateState::Pending), 3);
    let places: Vec<u32> = all.rows.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [0, 1, 2]);
    let (place, pending) = all.rows[1].clone();
    let begun = CampaignDevice {
        state: UpdateState::Downloaded,
        bytes: 900,
        reason: Some("it has it".into()),
        updated_at: at(30),
        ..pending.clone()
    };
    let begin = || {
        let mut batch = Batch::default();
        batch.expects.push(Expect::CampaignDevice {
            campaign: campaign.id,
            place,
            row: Box::new(pending.clone()),
        });
        let was = Some(UpdateState::Pending);
        put_device(&mut batch, (campaign.id, place), was, begun.clone());
        batch
    };
    assert_eq!(commit(&*store, begin()), Ok(()));
    assert_eq!(commit(&*store, begin()), Err(CommitError::Conflict));
    let pending = look(WantedRows::PendingFrom(1));
    assert_eq!(pending.rows.len(), 1, "the second has begun");
    assert_eq!(
        (
            pending.counts.of(UpdateState::Pending),
            pending.counts.active()
        ),
        (2, 1)
    );
    assert_eq!(look(WantedRows::Active).rows, [(1, begun.clone())]);
    assert_eq!(moved(campaign.id, Some(begun.state), begun.state), []);
    let second = PageRequest { number: 2, size: 1 };
    let page = wait(store.campaign_devices(campaign.id, second));
    assert_eq!(page, Ok(vec![begun]));
}

pub(super) fn campaigns_are_removed_with_their_devices(ground: &TestBed<'_>) {
    let store = ground.open();
    let [gone, kept] = [10, 20].map(|second| made(&*store, second, 2));
    assert_eq!(commit(&*store, removal_of_devices(gone.id)), Ok(()));
    let removal = removal_of_campaign(acme(), gone.id);
    assert_eq!(commit(&*store, removal), Ok(()));
    assert_eq!(wait(store.campaign(acme(), gone.id)), Ok(None));
    assert_eq!(wait(store.campaign_devices(gone.id, ALL)), Ok(Vec::new()));
    let counts = wait(store.campaign_counts(gone.id)).expect("an answer");
    assert_eq!(counts.of(UpdateState::Pending), 0);
    assert_eq!(wait(store.open_campaigns()), Ok(vec![kept.clone()]));
    let devices = wait(store.campaign_devices(kept.id, ALL)).expect("an answer");
    assert_eq!(devices.len(), 2);
}

fn image(customer: &CustomerId, second: i64) -> FirmwareImage {
    let mut moment = moment(second, 7);
    FirmwareImage {
        id: ImageId::new(moment.uuid()),
        customer: customer.clone(),
        name: (second == 10).then(|| "Meter".into()),
        version: (second == 20).then(|| "1.5".into()),
        created_at: moment.now(),
        bytes: 1 << 40,
        sha256: [7; 32],
    }
}

/// A campaign of some devices that was created at a second.
pub(crate) fn made(store: &dyn Store, second: i64, devices: u32) -> Campaign {
    let mut moment = moment(second, 7);
    let id = CampaignId::new(moment.uuid());
    let source = match second {
        10 => ImageSource::Elsewhere("https://devices.example.com/image".into()),
        _ => ImageSource::Stored {
            image: ImageId::from_bytes([9; 16]),
            bytes: 900,
        },
    };
    let named = |number: u32| DeviceId::parse(&format!("meter-{number}")).expect("an id");
    let named = (0..devices).map(named).collect();
    for batch in devices_of(moment.now(), id, named) {
        assert_eq!(commit(store, batch), Ok(()));
    }
    let campaign = Campaign {
        id,
        customer: acme(),
        state: CampaignState::Running,
        created_at: moment.now(),
        source,
        secret: [3; 16],
        method: DeliveryMethod::Pull,
        devices,
        rules: CampaignRules {
            concurrency: 5,
            rate_per_minute: Some(60),
            retries: 2,
            canary_percent: Some(10),
            halt_at_failed_percent: Some(20),
            not_before: Some(at(5)),
            not_after: at(5_000),
        },
        failures_accepted: 1,
        is_stopping: false,
    };
    let put_campaign = Change::PutCampaign(Box::new(campaign.clone()));
    assert_eq!(commit(store, batch(vec![put_campaign])), Ok(()));
    campaign
}
