//! Can anything a peer sends make a machine fall over? Whatever comes, the answer is well-formed
//! and time goes on.

#![allow(clippy::unwrap_used, clippy::panic)]

mod inputs;
mod saying;
mod scene;

use engine::action::Mode;
use engine::action::Operation;
use proptest::collection::vec;
use proptest::prelude::proptest;

use inputs::{
    Asking, From, Home, Input, PATHS, Saying, Sense, Telling, To, exchanging, input, saying,
    telling,
};
use scene::Scene;

proptest! {
    #[test]
    fn whatever_comes_is_answered_well_or_not_at_all(inputs in vec(input(), 0..60)) {
        for home in [Home::Known, Home::Unknown] {
            let mut scene = Scene::new(home);
            for input in inputs.clone() {
                scene.play(input);
            }
        }
    }

    #[test]
    fn whatever_is_answered_in_blocks_is_taken_well(inputs in vec(exchanging(), 0..60)) {
        let mut scene = Scene::new(Home::Known);
        scene.play(Input::Clear(Sense::Register, From::Home));
        for input in inputs {
            scene.play(input);
        }
    }

    #[test]
    fn whatever_is_told_of_what_is_observed_is_taken_well(tellings in vec(telling(), 0..60)) {
        let mut scene = Scene::new(Home::Unknown);
        scene.play(Input::Clear(Sense::Register, From::Home));
        for telling in tellings {
            // Whatever it lost, it is asked for again.
            for path in PATHS {
                let asking = Asking::Operation(Operation::ObserveStart, path);
                scene.play(Input::Submit(asking, Mode::SendNow));
                scene.play(Input::Clear(Sense::Agreement, From::Home));
            }
            scene.play(Input::Told(telling));
        }
    }

    #[test]
    fn whatever_is_told_of_what_is_reported_is_taken_well(tellings in vec(telling(), 0..60)) {
        let mut scene = Scene::reporting();
        for (turn, telling) in tellings.into_iter().enumerate() {
            // What a device refused counts until it registers anew.
            let sense = if turn % 5 == 0 { Sense::Register } else { Sense::Update };
            scene.play(Input::Clear(sense, From::Home));
            scene.play(Input::Told(Telling { to: To::Asked, ..telling }));
            scene.play(Input::Due);
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_said_is_told_before_it_is_thanked_and_once(sayings in vec(saying(), 0..60)) {
        let mut scene = Scene::new(Home::Known);
        scene.play(Input::Clear(Sense::Register, From::Home));
        for saying in sayings {
            let saying = Saying { from: From::Home, ..saying };
            scene.play(Input::Said(saying.clone()));
            // Nothing was heard in between, so that it is taken for the same.
            scene.repeat(saying.clone());
            scene.play(Input::SaidInBlocks(saying));
        }
    }
}
