//! Can anything a peer sends make a machine fall over? Whatever comes, the answer is well-formed
//! and time goes on.

#![allow(clippy::unwrap_used, clippy::panic)]

mod fixture;
mod inputs;
mod messages;

use engine::action::Mode;
use engine::action::Operation;
use proptest::collection::vec;
use proptest::prelude::proptest;

use fixture::NoiseFixture;
use inputs::{
    AddressSetting, CallerCommand, Input, PATHS, RequestMeaning, RequestShape, ResponseShape,
    ResponseTarget, Sender, exchanging, input, saying, telling,
};

proptest! {
    #[test]
    fn whatever_comes_is_answered_well_or_not_at_all(inputs in vec(input(), 0..60)) {
        for home in [AddressSetting::Known, AddressSetting::Unknown] {
            let mut fixture = NoiseFixture::new(home);
            for input in inputs.clone() {
                fixture.play(input);
            }
        }
    }

    #[test]
    fn whatever_is_answered_in_blocks_is_taken_well(inputs in vec(exchanging(), 0..60)) {
        let mut fixture = NoiseFixture::new(AddressSetting::Known);
        fixture.play(Input::Clear(RequestMeaning::Register, Sender::Home));
        for input in inputs {
            fixture.play(input);
        }
    }

    #[test]
    fn whatever_is_told_of_what_is_observed_is_taken_well(tellings in vec(telling(), 0..60)) {
        let mut fixture = NoiseFixture::new(AddressSetting::Unknown);
        fixture.play(Input::Clear(RequestMeaning::Register, Sender::Home));
        for telling in tellings {
            // Whatever it lost, it is asked for again.
            for path in PATHS {
                let asking = CallerCommand::Operation(Operation::ObserveStart, path);
                fixture.play(Input::Submit(asking, Mode::SendNow));
                fixture.play(Input::Clear(RequestMeaning::Agreement, Sender::Home));
            }
            fixture.play(Input::Told(telling));
        }
    }

    #[test]
    fn whatever_is_told_of_what_is_reported_is_taken_well(tellings in vec(telling(), 0..60)) {
        let mut fixture = NoiseFixture::reporting();
        for (turn, telling) in tellings.into_iter().enumerate() {
            // What a device refused counts until it registers anew.
            let is_anew = turn % 5 == 0;
            let sense = if is_anew { RequestMeaning::Register } else { RequestMeaning::Update };
            fixture.play(Input::Clear(sense, Sender::Home));
            fixture.play(Input::Told(ResponseShape { to: ResponseTarget::Asked, ..telling }));
            fixture.play(Input::Due);
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_said_is_told_before_it_is_thanked_and_once(sayings in vec(saying(), 0..60)) {
        let mut fixture = NoiseFixture::new(AddressSetting::Known);
        fixture.play(Input::Clear(RequestMeaning::Register, Sender::Home));
        for saying in sayings {
            let saying = RequestShape { from: Sender::Home, ..saying };
            fixture.play(Input::Said(saying.clone()));
            // Nothing was heard in between, so that it is taken for the same.
            fixture.repeat(saying.clone());
            fixture.play(Input::SaidInBlocks(saying));
        }
    }
}
