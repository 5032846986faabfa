//! How does the active node reach a destination that another node delivers to? With a call for each
//! command, which that node answers as its own caller's. Which events are new, the others learn
//! from a stream of the active node (`news.rs`).

use std::time::Duration;

use engine::delivery::backlog::Sequence;
use engine::delivery::command::{DestinationCommand, DestinationReply, TestOutcome};
use engine::delivery::destination::{Destination, DestinationAmendment};
use engine::delivery::forwarding::ReplayUnderWay;
use engine::ids::{CustomerId, DestinationId};
use engine::supervision::Unserved;
use reqwest::{Client, Response, StatusCode};
use store::destination_to_bytes;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::client_of;
use super::identity::NodeIdentity;
use crate::arbiters::OtherNodes;

/// Where a node that delivers takes commands for destinations; behind it the id and a command.
pub const DESTINATIONS: &str = "/v1/destinations";

/// Where it forgets the destinations of a customer; behind it the id.
pub const CUSTOMERS: &str = "/v1/customers";

/// How long an answer may take: that to a test waits for the endpoint.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// How long a command waits for a node that delivers to its destination: a partition moves within a
/// second.
const MOVE_MAX: Duration = Duration::from_secs(3);

/// How often it looks again.
const LOOK: Duration = Duration::from_millis(250);

/// The nodes that deliver beside the active one.
#[derive(Clone)]
pub struct DeliveringNodes {
    client: Client,
    known: watch::Receiver<OtherNodes>,
}

/// A command, as it is called between nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DestinationCall {
    /// Deliver to it from now on: it was created.
    Begin,
    /// [`DestinationCommand::Amend`]; the body is the destination as it is to be.
    Amend,
    /// [`DestinationCommand::Restart`].
    Restart,
    /// [`DestinationCommand::Replay`].
    Replay,
    /// [`DestinationCommand::Discard`]; the body has their numbers, with spaces between.
    Discard,
    /// [`DestinationCommand::Test`]; the answer is a text of the outcome.
    Test,
    /// [`DestinationCommand::Remove`].
    Remove,
}

impl DestinationCall {
    const WORDS: [(Self, &str); 7] = [
        (Self::Begin, "begin"),
        (Self::Amend, "amend"),
        (Self::Restart, "restart"),
        (Self::Replay, "replay"),
        (Self::Discard, "discard"),
        (Self::Test, "test"),
        (Self::Remove, "remove"),
    ];

    /// The call of a word.
    pub fn parse(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(call, _)| *call)
    }

    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(call, _)| *call == self);
        found.map_or("", |(_, word)| word)
    }
}

/// The outcome of a test as a text: whether it was accepted, the status or `-`, and the message.
pub fn write_outcome(outcome: &TestOutcome) -> String {
    let TestOutcome {
        accepted,
        status,
        message,
    } = outcome;
    let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
    format!("{accepted} {status} {message}")
}

/// The outcome in such a text.
fn read_outcome(text: &str) -> Option<TestOutcome> {
    let (accepted, rest) = text.split_once(' ')?;
    let (status, message) = rest.split_once(' ')?;
    Some(TestOutcome {
        accepted: accepted.parse().ok()?,
        status: match status {
            "-" => None,
            status => Some(status.parse().ok()?),
        },
        message: message.to_owned(),
    })
}

/// The numbers of dead letters as a text.
fn write_numbers(letters: &[Sequence]) -> String {
    let numbers = letters.iter().map(|Sequence(number)| number.to_string());
    numbers.collect::<Vec<_>>().join(" ")
}

/// The numbers in such a text.
pub fn read_numbers(text: &str) -> Option<Box<[Sequence]>> {
    let numbers = text.split_ascii_whitespace();
    numbers.map(|it| it.parse().ok().map(Sequence)).collect()
}

impl DeliveringNodes {
    /// Those that are shown by `known`, who have the same secret.
    pub fn new(
        identity: &NodeIdentity,
        known: watch::Receiver<OtherNodes>,
    ) -> Result<Self, reqwest::Error> {
        let client = client_of(identity)?;
        Ok(Self { client, known })
    }

    /// Has a destination delivered to that was created.
    pub(crate) async fn begin(&self, id: DestinationId) -> Result<(), Unserved> {
        let call = self.call(id, DestinationCall::Begin, Vec::new());
        call.await.map(drop)
    }

    /// Has a command carried out for a destination, of which this is known.
    pub(crate) async fn ask(
        &self,
        known: Destination,
        command: DestinationCommand,
    ) -> Result<DestinationReply, Unserved> {
        let id = known.id;
        let (call, body) = match command {
            DestinationCommand::Amend(amendment) => {
                let amended = amended(known.clone(), *amendment);
                (DestinationCall::Amend, destination_to_bytes(&amended))
            }
            DestinationCommand::Restart => (DestinationCall::Restart, Vec::new()),
            DestinationCommand::Replay => (DestinationCall::Replay, Vec::new()),
            DestinationCommand::Discard(letters) => {
                (DestinationCall::Discard, write_numbers(&letters).into())
            }
            DestinationCommand::Test => (DestinationCall::Test, Vec::new()),
            DestinationCommand::Remove => (DestinationCall::Remove, Vec::new()),
        };
        let response = self.call(id, call, body).await?;
        Ok(match call {
            // The caller reads it.
            DestinationCall::Begin | DestinationCall::Amend | DestinationCall::Restart => {
                DestinationReply::Destination(Box::new(known))
            }
            DestinationCall::Replay => DestinationReply::Replayed,
            DestinationCall::Discard if response.status() == StatusCode::CONFLICT => {
                DestinationReply::Discarded(Err(ReplayUnderWay))
            }
            DestinationCall::Discard => DestinationReply::Discarded(Ok(())),
            DestinationCall::Test => {
                let answer = response.bytes().await.map_err(|_| Unserved::Failed)?;
                let outcome = str::from_utf8(&answer).ok().and_then(read_outcome);
                DestinationReply::Tested(outcome.ok_or(Unserved::Failed)?)
            }
            DestinationCall::Remove => DestinationReply::Removed,
        })
    }

    /// Has the destinations of a customer forgotten that is being removed.
    pub(crate) async fn forget(&self, customer: &CustomerId) -> Result<(), Unserved> {
        let nodes = self.known.borrow().holders();
        for node in nodes {
            let url = format!("https://{node}{CUSTOMERS}/{customer}/forget");
            answered(self.client.post(url).timeout(ANSWER_MAX).send().await)?;
        }
        Ok(())
    }

    /// Calls the node that delivers to a destination, once there is one.
    async fn call(
        &self,
        id: DestinationId,
        call: DestinationCall,
        body: Vec<u8>,
    ) -> Result<Response, Unserved> {
        let path = format!("{DESTINATIONS}/{id}/{}", call.word());
        let until = Instant::now() + MOVE_MAX;
        let mut known = self.known.clone();
        loop {
            let node = known.borrow_and_update().address_of(id.partition());
            let called = match node {
                Some(node) => {
                    let url = format!("https://{node}{path}");
                    let request = self.client.post(url).timeout(ANSWER_MAX);
                    answered(request.body(body.clone()).send().await)
                }
                None => Err(Unserved::Unknown),
            };
            match called {
                // It does not deliver to it, or not yet.
                Err(Unserved::Unknown) if Instant::now() + LOOK < until => {
                    // Whether it has changed or not.
                    drop(timeout_at(Instant::now() + LOOK, known.changed()).await);
                }
                Err(Unserved::Unknown) => return Err(Unserved::Busy),
                called => return called,
            }
        }
    }
}

fn amended(
    mut destination: Destination,
    DestinationAmendment {
        name,
        target,
        event_types,
    }: DestinationAmendment,
) -> Destination {
    destination.name = name.unwrap_or(destination.name);
    destination.target = target.unwrap_or(destination.target);
    destination.event_types = event_types.unwrap_or(destination.event_types);
    destination
}

/// What the answer of another node says.
fn answered(response: Result<Response, reqwest::Error>) -> Result<Response, Unserved> {
    let response = response.map_err(|error| {
        warn!(%error, "a node that delivers cannot be reached");
        match error.is_connect() {
            true => Unserved::Busy,
            false => Unserved::Failed,
        }
    })?;
    match response.status() {
        StatusCode::NOT_FOUND => Err(Unserved::Unknown),
        StatusCode::SERVICE_UNAVAILABLE => Err(Unserved::Busy),
        status if status.is_success() || status == StatusCode::CONFLICT => Ok(response),
        _ => Err(Unserved::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_tell_each_other_is_read_as_it_was_written() {
        for (call, word) in DestinationCall::WORDS {
            assert_eq!(
                (call.word(), DestinationCall::parse(word)),
                (word, Some(call))
            );
        }
        assert_eq!(DestinationCall::parse("begin "), None);
        for status in [None, Some(503)] {
            let outcome = TestOutcome {
                accepted: status.is_none(),
                status,
                message: "the endpoint answered 503".to_owned(),
            };
            let read = read_outcome(&write_outcome(&outcome));
            assert_eq!(read, Some(outcome));
        }
        assert_eq!(read_outcome("true 70000 x"), None);
        let letters = [Sequence(7), Sequence(u64::MAX)];
        let read = read_numbers(&write_numbers(&letters));
        assert_eq!(read.as_deref(), Some(&letters[..]));
        assert_eq!(read_numbers("1 -1"), None);
    }
}
