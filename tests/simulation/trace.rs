//! The latest events, for the reader of a failure, and a digest of all events.

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use engine::action::Status;
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::{CampaignId, DestinationId};
use protocol::coap::message::Message;

use crate::number_from;
use crate::service::DatagramEnd;

/// How many notes a failure shows.
static NOTES_MAX: LazyLock<u64> = LazyLock::new(|| number_from("SIMULATION_NOTES").unwrap_or(60));

/// The notes of a world.
#[derive(Default)]
pub(crate) struct Trace {
    events: u64,
    notes: VecDeque<Note>,
    digest: DefaultHasher,
}

#[derive(Clone, Debug, Hash)]
struct Note {
    event: u64,
    at_ms: i64,
    what: TraceEvent,
}

/// A noteworthy event; cheap to create, formatted only for a failure.
#[derive(Clone, Debug, Hash)]
pub(crate) enum TraceEvent {
    ServiceHears {
        port: u16,
        at: ArbiterId,
        number: u64,
        datagram: Box<[u8]>,
    },
    Forwarded {
        number: u64,
        from: ArbiterId,
        to: ArbiterId,
    },
    Ended {
        number: u64,
        end: DatagramEnd,
    },
    DeviceHears {
        who: usize,
        datagram: Box<[u8]>,
    },
    NobodyHears {
        port: u16,
    },
    ServiceSays {
        port: u16,
        datagram: Box<[u8]>,
    },
    DeviceSays {
        who: usize,
        datagram: Box<[u8]>,
    },
    Device {
        who: usize,
        does: &'static str,
    },
    Asked {
        who: usize,
        call: u64,
        what: &'static str,
    },
    Replied {
        call: u64,
        what: &'static str,
    },
    Commits {
        who: usize,
        step: u64,
    },
    Durable {
        who: usize,
        step: u64,
    },
    Unsaved {
        who: usize,
        step: u64,
    },
    Saved {
        who: usize,
        action: [u8; 16],
        status: Status,
        attempts: u8,
    },
    Paged {
        at: ArbiterId,
        devices: usize,
    },
    Started {
        at: ArbiterId,
    },
    Restored {
        at: ArbiterId,
        who: usize,
        pending: usize,
    },
    Fell {
        who: usize,
        parked: bool,
    },
    /// An event of a destination.
    Post {
        id: DestinationId,
        does: &'static str,
    },
    /// An event reached an endpoint.
    Tried {
        id: DestinationId,
        sequence: u64,
        how: &'static str,
    },
    /// An event of a campaign.
    Campaign {
        id: CampaignId,
        does: &'static str,
    },
    World(&'static str),
}

impl Trace {
    pub(crate) fn next_event(&mut self) {
        self.events += 1;
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn note(&mut self, at_ms: i64, what: TraceEvent) {
        let event = self.events;
        let note = Note { event, at_ms, what };
        note.hash(&mut self.digest);
        if self.notes.len() as u64 >= *NOTES_MAX {
            self.notes.pop_front();
        }
        self.notes.push_back(note);
    }

    /// A digest of everything that was ever noted.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first_ms = self.notes.front().map_or(0, |note| note.at_ms);
        for note in &self.notes {
            let after_ms = note.at_ms - first_ms;
            writeln!(f, "  #{:<8} +{after_ms:<9} {}", note.event, note.what)?;
        }
        Ok(())
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceHears {
                port,
                at,
                number,
                datagram,
            } => {
                let (at, words) = (at.index(), Words(datagram));
                write!(
                    f,
                    "service hears  :{port} at {at}, datagram {number}: {words}"
                )
            }
            Self::Forwarded { number, from, to } => {
                let (from, to) = (from.index(), to.index());
                write!(f, "datagram {number} goes from {from} to {to}")
            }
            Self::Ended { number, end } => write!(f, "datagram {number} ends: {end:?}"),
            Self::DeviceHears { who, datagram } => {
                write!(f, "device {who} hears {}", Words(datagram))
            }
            Self::NobodyHears { port } => write!(f, "nobody is at :{port}"),
            Self::ServiceSays { port, datagram } => {
                write!(f, "service says   :{port} {}", Words(datagram))
            }
            Self::DeviceSays { who, datagram } => {
                write!(f, "device {who} says  {}", Words(datagram))
            }
            Self::Device { who, does } => write!(f, "device {who} {does}"),
            Self::Asked { who, call, what } => write!(f, "call {call} asks device {who}: {what}"),
            Self::Replied { call, what } => write!(f, "call {call} is answered: {what}"),
            Self::Commits { who, step } => write!(f, "disk takes step {step} of device {who}"),
            Self::Durable { who, step } => write!(f, "step {step} of device {who} is durable"),
            Self::Unsaved { who, step } => write!(f, "step {step} of device {who} is not saved"),
            Self::Saved {
                who,
                action,
                status,
                attempts,
            } => {
                let tail = Hex(&action[12..]);
                write!(
                    f,
                    "saved: {tail} of device {who} {status:?}, attempts {attempts}"
                )
            }
            Self::Paged { at, devices } => {
                write!(f, "a page of {devices} devices reaches {}", at.index())
            }
            Self::Started { at } => write!(f, "everybody is back at {}", at.index()),
            Self::Restored { at, who, pending } => {
                let at = at.index();
                write!(f, "device {who} is restored at {at} with {pending} pending")
            }
            Self::Fell { who, parked } => write!(f, "device {who} panicked, parked: {parked}"),
            Self::Post { id, does } => write!(f, "destination {} {does}", place(*id)),
            Self::Tried { id, sequence, how } => {
                let id = place(*id);
                write!(f, "destination {id} is brought {sequence} and {how}")
            }
            Self::Campaign { id, does } => {
                let [.., number] = *id.as_bytes();
                write!(f, "campaign {number} {does}")
            }
            Self::World(what) => f.write_str(what),
        }
    }
}

/// The number of a destination among all of them.
fn place(id: DestinationId) -> u8 {
    id.as_bytes()[15]
}

struct Words<'a>(&'a [u8]);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(message) = Message::decode(self.0) else {
            return write!(f, "noise {}", Hex(self.0));
        };
        let (kind, code, id) = (message.kind, message.code, message.message_id.0);
        write!(f, "{kind:?} {code} id {id} token {}", message.token)?;
        if let Some(number) = message.observe() {
            write!(f, " observe {number}")?;
        }
        for segment in message.uri_path().chain(message.location_path()) {
            write!(f, "/{segment}")?;
        }
        if message.payload.is_empty() {
            return Ok(());
        }
        write!(f, " {:?}", String::from_utf8_lossy(&message.payload))
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
