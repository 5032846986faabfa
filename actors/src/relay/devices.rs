//! How does the active node reach a device of another node? With a call for each command, which
//! that node carries out as its own caller's.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::arbiter::input::{DeviceCommand, DeviceReply};
use engine::associations::AssociationSnapshot;
use engine::ids::{CustomerId, DeviceKey, NodeId};
use engine::moment::Timestamp;
use engine::query::activity::ActivityMinute;
use engine::strangers::Stranger;
use engine::supervision::Unserved;
use reqwest::{Body, Client, Response, StatusCode};
use store::{
    association_of_bytes, device_command_to_bytes, device_reply_of_bytes, strangers_of_bytes,
};
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::client_of;
use super::identity::NodeIdentity;
use crate::arbiters::nodes::NodeView;

/// Where a node takes commands for its devices; behind it the key of the device.
pub const DEVICES: &str = "/v1/devices";

/// Where it is told something of devices, in a line.
pub const NOTICES: &str = "/v1/device-notices";

/// Where it describes its DTLS session with a device; behind it the key of the device.
pub const ASSOCIATIONS: &str = "/v1/associations";

/// Where it lists the senders that are no known device.
pub const STRANGERS: &str = "/v1/strangers";

/// Where it says how busy a customer was; behind it the id.
pub const ACTIVITY: &str = "/v1/activity";

/// How long a node may take to answer what is told or asked for all.
const SHORT: Duration = Duration::from_secs(2);

/// How long an answer may take: that to a command waits for a commit.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The pause before a node is told again, and for how long that is done: for longer than a lease.
const TELL_AGAIN: Duration = Duration::from_secs(1);
const TELL_MAX: Duration = Duration::from_secs(60);

/// The devices of the other nodes.
#[derive(Clone)]
pub(crate) struct OtherDevices {
    client: Client,
    nodes: NodeView,
    /// What nodes could not be told yet. A node is in it while a task tells it.
    untold: Arc<Mutex<BTreeMap<NodeId, Untold>>>,
}

/// What a node could not be told yet, and since when, oldest first.
type Untold = VecDeque<(DeviceNotice, Instant)>;

impl OtherDevices {
    /// Those of these nodes, which are reached with this identity.
    pub(crate) fn new(identity: &NodeIdentity, nodes: NodeView) -> Result<Self, reqwest::Error> {
        let client = client_of(identity)?;
        let untold = Arc::default();
        Ok(Self {
            client,
            nodes,
            untold,
        })
    }

    /// Has a node carry out a command; none, if it does not have the device, or cannot be reached.
    pub(crate) async fn ask(
        &self,
        node: NodeId,
        device: DeviceKey,
        command: &DeviceCommand,
    ) -> Option<Result<DeviceReply, Unserved>> {
        let address = self.nodes.others().addresses.get(&node).copied()?;
        let url = format!("https://{address}{DEVICES}/{device}");
        let body = device_command_to_bytes(command);
        let response = match self.post(url, body, ANSWER_MAX).await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return None,
            // Nothing is done twice by these.
            Err(_) if matches!(command, DeviceCommand::ReadProfile | DeviceCommand::Inspect) => {
                return None;
            }
            Err(error) => {
                // It may have been carried out, as a call that a killed node did not answer.
                warn!(%error, %node, "a command for a device of another node was not answered");
                return Some(Err(Unserved::Busy));
            }
        };
        if response.status() == StatusCode::NOT_FOUND {
            return None;
        }
        let answer = response.error_for_status();
        let answer = async { answer?.bytes().await };
        let answer = answer.await.ok().as_deref().and_then(device_reply_of_bytes);
        Some(answer.unwrap_or(Err(Unserved::Failed)))
    }

    /// Tells all other nodes something. One that cannot be told at once is told later, as long as
    /// it is one of them. One that did not renew its leases in time is silent, and goes on with its
    /// devices if it can soon: after the database was away, the first change is often made before
    /// the last node is back.
    pub(crate) async fn tell(&self, notice: &DeviceNotice) {
        let (heard, unheard): (Vec<NodeId>, Vec<NodeId>) = {
            let others = self.nodes.others();
            let heard = others.addresses.keys().copied().collect();
            (heard, others.unheard.keys().copied().collect())
        };
        for node in unheard {
            self.tell_later(node, notice.clone());
        }
        let telling = heard.into_iter().map(|node| {
            let (others, notice) = (self.clone(), notice.clone());
            actix_rt::spawn(async move {
                if let Err(error) = others.tell_one(node, &notice).await {
                    warn!(%error, %node, %notice, "a node cannot be told of a change for now");
                    others.tell_later(node, notice);
                }
            })
        });
        for told in telling.collect::<Vec<_>>() {
            drop(told.await);
        }
    }

    /// Tells a node something once it can be told, if that is soon enough.
    fn tell_later(&self, node: NodeId, notice: DeviceNotice) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told = untold.contains_key(&node);
        let waiting = untold.entry(node).or_default();
        waiting.push_back((notice, Instant::now()));
        if !is_told {
            actix_rt::spawn(self.clone().go_on_telling(node));
        }
    }

    async fn go_on_telling(self, node: NodeId) {
        loop {
            sleep(TELL_AGAIN).await;
            while let Some(notice) = self.next_untold(node) {
                if self.tell_one(node, &notice).await.is_err() {
                    break;
                }
                let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
                untold.entry(node).or_default().pop_front();
            }
            let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
            if untold.get(&node).is_none_or(VecDeque::is_empty) {
                untold.remove(&node);
                return;
            }
        }
    }

    /// The next thing to tell a node, without those that waited for too long.
    fn next_untold(&self, node: NodeId) -> Option<DeviceNotice> {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = untold.get_mut(&node)?;
        while let Some((_, since)) = waiting.front()
            && since.elapsed() > TELL_MAX
        {
            waiting.pop_front();
        }
        waiting.front().map(|(notice, _)| notice.clone())
    }

    async fn tell_one(&self, node: NodeId, notice: &DeviceNotice) -> Result<(), reqwest::Error> {
        let address = {
            let others = self.nodes.others();
            let listed = others.addresses.get(&node).or(others.unheard.get(&node));
            listed.copied()
        };
        let Some(address) = address else {
            return Ok(());
        };
        let url = format!("https://{address}{NOTICES}");
        let told = self.post(url, notice.to_string(), SHORT).await?;
        match told.status() {
            // A node without arbiters yet.
            StatusCode::NOT_FOUND => Ok(()),
            _ => told.error_for_status().map(drop),
        }
    }

    /// What the other nodes answer to a question; those that do not are left out.
    async fn ask_all<T>(&self, path: &str, read: impl Fn(&[u8]) -> Option<T>) -> Vec<T> {
        let addresses: Vec<_> = self.nodes.others().addresses.values().copied().collect();
        let asking = addresses.into_iter().map(|address| {
            let asked = self.client.get(format!("https://{address}{path}"));
            actix_rt::spawn(async move {
                let response = asked.timeout(SHORT).send().await?;
                response.error_for_status()?.bytes().await
            })
        });
        let mut answers = Vec::new();
        for answer in asking.collect::<Vec<_>>() {
            match answer.await {
                Ok(Ok(answer)) => answers.extend(read(&answer)),
                Ok(Err(error)) => debug!(%error, "a node is left out of an answer"),
                Err(error) => debug!(%error, "a node is left out of an answer"),
            }
        }
        answers
    }

    /// The DTLS sessions of a device at the other nodes.
    pub(crate) async fn associations(&self, device: DeviceKey) -> Vec<AssociationSnapshot> {
        let path = format!("{ASSOCIATIONS}/{device}");
        let answers = self.ask_all(&path, association_of_bytes).await;
        answers.into_iter().flatten().collect()
    }

    /// The refused senders of each of the other nodes.
    pub(crate) async fn strangers(&self) -> Vec<Vec<Stranger>> {
        self.ask_all(STRANGERS, strangers_of_bytes).await
    }

    /// How busy a customer was at each of the other nodes, in minutes.
    pub(crate) async fn activity(&self, customer: &CustomerId) -> Vec<ActivityMinute> {
        let path = format!("{ACTIVITY}/{customer}");
        self.ask_all(&path, read_minutes).await.concat()
    }

    async fn post(
        &self,
        url: String,
        body: impl Into<Body>,
        answer_max: Duration,
    ) -> Result<Response, reqwest::Error> {
        let request = self.client.post(url).timeout(answer_max);
        request.body(body).send().await
    }
}

/// Minutes as a text: in each line when one began, its events and its requests.
pub fn write_minutes(minutes: &[ActivityMinute]) -> String {
    let lines = minutes.iter().map(|minute| {
        let ActivityMinute {
            begun_at,
            events,
            requests,
        } = minute;
        format!("{} {events} {requests}\n", begun_at.as_ms())
    });
    lines.collect()
}

/// The minutes in such a text.
fn read_minutes(text: &[u8]) -> Option<Vec<ActivityMinute>> {
    let lines = str::from_utf8(text).ok()?.lines();
    let read = lines.map(|line| {
        let mut words = line.split(' ');
        Some(ActivityMinute {
            begun_at: Timestamp::from_ms(words.next()?.parse().ok()?),
            events: words.next()?.parse().ok()?,
            requests: words.next()?.parse().ok()?,
        })
    });
    read.collect()
}

/// What all arbiters are told of devices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DeviceNotice {
    /// The DTLS sessions of a device end: its keys are no longer valid.
    SessionsOver(DeviceKey),
    /// The certificate authorities of a customer have changed.
    AuthoritiesChanged(CustomerId),
    /// The settings of a customer have changed.
    SettingsChanged(CustomerId),
}

/// A word and the id that it is about.
impl fmt::Display for DeviceNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionsOver(device) => write!(f, "sessions-over {device}"),
            Self::AuthoritiesChanged(customer) => write!(f, "authorities-changed {customer}"),
            Self::SettingsChanged(customer) => write!(f, "settings-changed {customer}"),
        }
    }
}

/// The text is not that of a notice.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the notice cannot be read")]
pub struct InvalidNotice;

impl FromStr for DeviceNotice {
    type Err = InvalidNotice;

    fn from_str(text: &str) -> Result<Self, InvalidNotice> {
        let (word, id) = text.split_once(' ').ok_or(InvalidNotice)?;
        let customer = || CustomerId::parse(id).map_err(|_| InvalidNotice);
        Ok(match word {
            "sessions-over" => Self::SessionsOver(DeviceKey::parse(id).ok_or(InvalidNotice)?),
            "authorities-changed" => Self::AuthoritiesChanged(customer()?),
            "settings-changed" => Self::SettingsChanged(customer()?),
            _ => return Err(InvalidNotice),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_read_as_they_were_written() {
        let minutes = [(60_000, 3, 0), (120_000, 0, u64::MAX)];
        let minutes = minutes.map(|(begun_at, events, requests)| ActivityMinute {
            begun_at: Timestamp::from_ms(begun_at),
            events,
            requests,
        });
        let read = read_minutes(write_minutes(&minutes).as_bytes());
        assert_eq!(read.as_deref(), Some(&minutes[..]));
        for text in ["1 2\n", "1 2 -3\n", "a 2 3\n"] {
            assert_eq!(read_minutes(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_notice_is_read_as_it_was_written() {
        let customer = CustomerId::parse("acme").unwrap();
        for notice in [
            DeviceNotice::SessionsOver(DeviceKey::from_bytes([7; 16])),
            DeviceNotice::AuthoritiesChanged(customer.clone()),
            DeviceNotice::SettingsChanged(customer),
        ] {
            assert_eq!(notice.to_string().parse(), Ok(notice));
        }
        for text in ["sessions-over 7", "settings-changed", "other acme", ""] {
            assert_eq!(text.parse::<DeviceNotice>(), Err(InvalidNotice), "{text}");
        }
    }
}
