//! Each message in the states that only a client with a key reaches: the server awaits the answer
//! of its caller, or a Finished. The table of the README says what becomes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dtls::{
    AlertDescription, AssociationId, ClientConfig, Config, ConnectionIdOffer, Effect, Effects,
    HandshakeFailure, SigningKey,
};

use crate::certificates::{Authority, named, raw_key};
use crate::network::{Host, KEY, Network, psk_client, server_config};
use crate::orders::{ALL, Sent};

const HANDSHAKE: u8 = 22;
const CHANGE_CIPHER_SPEC: u8 = 20;
const RECORD_HEADER: usize = 13;
const MESSAGE_HEADER: usize = 12;

/// How the client proves itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Proof {
    PreSharedKey,
    PublicKey,
    Certificate,
    /// Of an earlier session.
    Secret,
}

/// What the server awaits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Awaited {
    Answer,
    Finished,
}

/// What the server has asked its caller.
#[derive(Clone, Copy, Debug)]
enum Question {
    Psk(AssociationId),
    PublicKey(AssociationId),
    Certificate(AssociationId),
}

#[test]
fn every_message_instead_of_a_finished_ends_as_the_table_says() {
    for proof in [
        Proof::PreSharedKey,
        Proof::PublicKey,
        Proof::Certificate,
        Proof::Secret,
    ] {
        check(proof, Awaited::Finished);
    }
}

#[test]
fn every_message_before_the_answer_of_the_caller_ends_as_the_table_says() {
    for proof in [Proof::PreSharedKey, Proof::PublicKey, Proof::Certificate] {
        check(proof, Awaited::Answer);
    }
}

fn check(proof: Proof, awaited: Awaited) {
    for sent in ALL {
        let what = format!("{sent:?} of a client with {proof:?}, awaited: {awaited:?}");
        let mut meeting = Meeting::of(proof);
        if awaited == Awaited::Finished {
            meeting.answer();
        }
        let out = meeting.send(sent);
        // Neither is numbered; a Finished is always protected.
        let is_dropped = matches!(sent, Sent::Finished | Sent::ChangeCipherSpec);
        match is_dropped {
            true => assert!(out.is_empty(), "{what}"),
            false => assert_eq!(
                failures(&out),
                [HandshakeFailure::Refused(
                    AlertDescription::UNEXPECTED_MESSAGE
                )],
                "{what}"
            ),
        }
        let early = meeting.finish();
        let answered = meeting.answer();
        let established = [early, answered].iter().map(established).sum::<usize>();
        assert_eq!(established, usize::from(is_dropped), "{what}");
        let count = meeting.network.server.association_count();
        assert_eq!(count, usize::from(is_dropped) + meeting.earlier, "{what}");
    }
}

/// A client and a server, up to the client's last messages.
struct Meeting {
    network: Network,
    /// The sessions before.
    earlier: usize,
    question: Option<Question>,
    /// The client's ChangeCipherSpec and Finished.
    last: Vec<Vec<u8>>,
    /// The number of the message that the server awaits.
    awaited: u16,
    /// The bodies of the messages, the latest of each type.
    bodies: BTreeMap<u8, Vec<u8>>,
}

impl Meeting {
    fn of(proof: Proof) -> Self {
        let server_key = raw_key(2);
        let mut network = Network::with(
            Config {
                server_key: Some(Arc::clone(&server_key)),
                ..server_config()
            },
            1,
        );
        let certified =
            |key: Arc<SigningKey>| ClientConfig::with_signing_key(key, server_key.public_key());
        let mut client = match proof {
            Proof::PreSharedKey | Proof::Secret => psk_client(),
            Proof::PublicKey => certified(raw_key(3)),
            Proof::Certificate => certified(Authority::new("CA").signs(&named("meter-1"), &[])),
        };
        client.connection_id = ConnectionIdOffer::Own;
        if proof == Proof::Secret {
            network.session(client.clone());
            client.resumption = network.resumption.clone();
            network.sent.clear();
        }
        client.connection_id = ConnectionIdOffer::None;
        let mut meeting = Self {
            earlier: network.server.association_count(),
            network,
            question: None,
            last: Vec::new(),
            awaited: 2,
            bodies: BTreeMap::new(),
        };
        meeting.network.connect(client, &mut || vec![]);
        let hello = vec![meeting.network.sent.remove(0).1];
        let mut of_client = hello;
        for _ in 0..2 {
            let of_server = meeting.exchange(Host::Server, &of_client);
            of_client = meeting.exchange(Host::Client, &of_server);
        }
        let records = of_client.iter().flat_map(|it| records(it));
        let (plain, last) = records.partition(|it| it[0] == HANDSHAKE && it[3..5] == [0, 0]);
        meeting.last = last;
        meeting.awaited += meeting.exchange_count(plain);
        meeting
    }

    /// Hands datagrams to a host; what it sends.
    fn exchange(&mut self, to: Host, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        for datagram in datagrams {
            for record in records(datagram) {
                if record[0] == HANDSHAKE && record[3..5] == [0, 0] {
                    let message = &record[RECORD_HEADER..];
                    self.bodies
                        .insert(message[0], message[MESSAGE_HEADER..].to_vec());
                }
            }
            let peer = match to {
                Host::Server => self.network.client_address,
                Host::Client => self.network.server_address,
            };
            let out = self.network.deliver(to, peer, datagram);
            for effect in out.iter() {
                match effect {
                    Effect::Send { datagram, .. } => answers.push(datagram.to_vec()),
                    Effect::LookUpPsk { association, .. } => {
                        self.question = Some(Question::Psk(association));
                    }
                    Effect::AdmitPublicKey { association, .. } => {
                        self.question = Some(Question::PublicKey(association));
                    }
                    Effect::AdmitCertificate { association, .. } => {
                        self.question = Some(Question::Certificate(association));
                    }
                    Effect::Established { .. } => {}
                    Effect::Received { .. }
                    | Effect::Moved { .. }
                    | Effect::Closed { .. }
                    | Effect::Failed { .. } => panic!("{effect:?}"),
                }
            }
        }
        answers
    }

    /// Hands messages to the server, one in a record each; how many they are.
    fn exchange_count(&mut self, messages: Vec<Vec<u8>>) -> u16 {
        let answers = self.exchange(Host::Server, &messages);
        assert!(answers.is_empty(), "the server awaits more");
        messages.len() as u16
    }

    /// The caller answers the server, if it was asked and has not answered yet.
    fn answer(&mut self) -> Effects {
        match self.question.take() {
            None => Effects::new(),
            Some(question) => {
                self.network
                    .call(Host::Server, |server, moment, out| match question {
                        Question::Psk(id) => server.provide_psk(moment, id, &[KEY], out),
                        Question::PublicKey(id) => server.admit(moment, id, out),
                        Question::Certificate(id) => server.admit_as(moment, id, b"meter-1", out),
                    })
            }
        }
    }

    /// A message as the next one, without protection.
    fn send(&mut self, sent: Sent) -> Effects {
        let (content_type, content) = if sent == Sent::ChangeCipherSpec {
            (CHANGE_CIPHER_SPEC, vec![1])
        } else {
            let number = sent as u8;
            let body = self.bodies.get(&number).cloned().unwrap_or_default();
            let [_, length @ ..] = (body.len() as u32).to_be_bytes();
            let mut content = vec![number];
            content.extend_from_slice(&length);
            content.extend_from_slice(&self.awaited.to_be_bytes());
            content.extend_from_slice(&[0, 0, 0]);
            content.extend_from_slice(&length);
            content.extend_from_slice(&body);
            (HANDSHAKE, content)
        };
        let mut record = vec![content_type, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 1, 0];
        record.extend_from_slice(&(content.len() as u16).to_be_bytes());
        record.extend_from_slice(&content);
        self.deliver(&record)
    }

    /// The client's ChangeCipherSpec and Finished, in one datagram.
    fn finish(&mut self) -> Effects {
        let last = self.last.concat();
        self.deliver(&last)
    }

    fn deliver(&mut self, datagram: &[u8]) -> Effects {
        let peer = self.network.client_address;
        self.network.deliver(Host::Server, peer, datagram)
    }
}

/// The records of a datagram without Connection IDs.
fn records(datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let mut rest = datagram;
    while !rest.is_empty() {
        let length = usize::from(u16::from_be_bytes([rest[11], rest[12]]));
        let (record, after) = rest.split_at(RECORD_HEADER + length);
        records.push(record.to_vec());
        rest = after;
    }
    records
}

fn failures(out: &Effects) -> Vec<HandshakeFailure> {
    let mut failures = Vec::new();
    for effect in out.iter() {
        if let Effect::Failed { reason, .. } = effect {
            failures.push(reason);
        }
    }
    failures
}

fn established(out: &Effects) -> usize {
    let is_established = |it: &Effect<'_>| matches!(it, Effect::Established { .. });
    out.iter().filter(is_established).count()
}
