//! A server and a client, a clock that is turned by hand, and what is between them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use dtls::{
    AssociationId, CertificateFault, ClientConfig, CloseReason, Config, Effect, Effects, Endpoint,
    HandshakeFailure, Identity, Moment, Resumption, Security, Timestamp,
};

pub(crate) const IDENTITY: &[u8] = b"urn:dev:meter-1";
pub(crate) const KEY: &[u8] = &[7; 16];

/// Numbers that follow from a seed: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.next() as u8);
    }
}

/// Who sends a datagram, or has something to report.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Host {
    Client,
    Server,
}

/// A report of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Report {
    Established(Identity, Security),
    Received(Vec<u8>),
    Moved(SocketAddr),
    Closed(CloseReason),
    Failed(HandshakeFailure),
}

/// What happens to a datagram: when each of its copies arrives after it was sent, in ms.
pub(crate) type Delivery = Vec<u64>;

/// Both hosts and the datagrams between them.
pub(crate) struct Network {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
    pub(crate) server_address: SocketAddr,
    pub(crate) client_address: SocketAddr,
    pub(crate) now: Timestamp,
    pub(crate) chance: Chance,
    /// The keys that the server's caller knows by identity.
    pub(crate) keys: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// The raw public keys that it knows.
    pub(crate) public_keys: BTreeSet<Vec<u8>>,
    /// The authorities whose certificates it admits, under their first name.
    pub(crate) authorities: Vec<Vec<u8>>,
    /// The names in the last certificate that was shown to it.
    pub(crate) names_shown: Vec<String>,
    /// What it found wrong with certificates.
    pub(crate) certificate_faults: Vec<CertificateFault>,
    /// How long the server's caller needs for a key; 0: at once.
    pub(crate) look_up_ms: u64,
    /// What becomes of a datagram of a host on the way.
    pub(crate) alter: fn(Host, Vec<u8>) -> Vec<u8>,
    pub(crate) reports: Vec<(Host, Report)>,
    pub(crate) server_association: Option<AssociationId>,
    pub(crate) resumption: Option<Resumption>,
    /// What the server was told to resume sessions with by their ids.
    pub(crate) cached: Vec<Vec<u8>>,
    /// Every datagram that was sent, lost ones included.
    pub(crate) sent: Vec<(Host, Vec<u8>)>,
    in_flight: BTreeMap<(Timestamp, u64), (Host, SocketAddr, Vec<u8>)>,
    look_ups: BTreeMap<(Timestamp, u64), (AssociationId, Vec<u8>)>,
    serial: u64,
}

impl Network {
    pub(crate) fn new() -> Self {
        Self::with(server_config(), 1)
    }

    pub(crate) fn with(server: Config, seed: u64) -> Self {
        let client = Config {
            accepts_clients: false,
            retransmission: server.retransmission,
            connection_id_prefix: (*b"c").into(),
            ..Config::new([2; 32])
        };
        Self {
            server: Endpoint::new(Arc::new(server)),
            client: Endpoint::new(Arc::new(client)),
            server_address: "192.0.2.1:5684".parse().unwrap(),
            client_address: "198.51.100.7:40000".parse().unwrap(),
            now: Timestamp::from_ms(1_800_000_000_000),
            chance: Chance(seed),
            keys: BTreeMap::from([(IDENTITY.to_vec(), vec![KEY.to_vec()])]),
            public_keys: BTreeSet::new(),
            authorities: Vec::new(),
            names_shown: Vec::new(),
            certificate_faults: Vec::new(),
            look_up_ms: 0,
            alter: |_, datagram| datagram,
            reports: Vec::new(),
            server_association: None,
            resumption: None,
            cached: Vec::new(),
            sent: Vec::new(),
            in_flight: BTreeMap::new(),
            look_ups: BTreeMap::new(),
            serial: 0,
        }
    }

    /// The client begins a handshake; its first flight is on its way.
    pub(crate) fn connect(
        &mut self,
        config: ClientConfig,
        delivery: &mut dyn FnMut() -> Delivery,
    ) -> AssociationId {
        let mut out = Effects::new();
        let server = self.server_address;
        let (now, chance) = (self.now, &mut self.chance);
        let mut entropy = |bytes: &mut [u8]| chance.fill(bytes);
        let mut moment = Moment {
            now,
            entropy: &mut entropy,
        };
        let id = self
            .client
            .connect(&mut moment, server, config, &mut out)
            .unwrap();
        self.perform(Host::Client, &out, delivery);
        id
    }

    /// Connects over a network that loses nothing, and returns the client's association.
    pub(crate) fn session(&mut self, config: ClientConfig) -> AssociationId {
        let id = self.connect(config, &mut || vec![10]);
        self.run(&mut || vec![10], 5_000);
        id
    }

    /// Sends content from a host.
    pub(crate) fn send(&mut self, from: Host, id: AssociationId, content: &[u8]) {
        self.send_over(from, id, content, &mut || vec![10]);
    }

    pub(crate) fn send_over(
        &mut self,
        from: Host,
        id: AssociationId,
        content: &[u8],
        delivery: &mut dyn FnMut() -> Delivery,
    ) {
        let mut out = Effects::new();
        self.endpoint(from).send(id, content, &mut out).unwrap();
        self.perform(from, &out, delivery);
    }

    /// Delivers a datagram to a host now.
    pub(crate) fn deliver(&mut self, to: Host, peer: SocketAddr, datagram: &[u8]) -> Effects {
        self.call(to, |endpoint, moment, out| {
            endpoint.handle_datagram(moment, peer, datagram, out);
        })
    }

    /// Turns the clock until nothing happens for a while, for so long at most.
    pub(crate) fn run(&mut self, delivery: &mut dyn FnMut() -> Delivery, for_ms: u64) {
        let end = self.now.plus_ms(for_ms);
        while let Some(at) = self.next_event().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            if let Some(entry) = self
                .in_flight
                .first_entry()
                .filter(|it| it.key().0 <= self.now)
            {
                let (from, peer, datagram) = entry.remove();
                let to = other(from);
                let out = self.deliver(to, peer, &datagram);
                self.perform(to, &out, delivery);
            } else if let Some(entry) = self
                .look_ups
                .first_entry()
                .filter(|it| it.key().0 <= self.now)
            {
                let (id, identity) = entry.remove();
                let out = self.provide(id, &identity);
                self.perform(Host::Server, &out, delivery);
            } else {
                for host in [Host::Client, Host::Server] {
                    let out = self.call(host, |it, moment, out| it.handle_timeout(moment, out));
                    self.perform(host, &out, delivery);
                }
            }
        }
        self.now = end;
    }

    pub(crate) fn endpoint(&mut self, host: Host) -> &mut Endpoint {
        match host {
            Host::Client => &mut self.client,
            Host::Server => &mut self.server,
        }
    }

    /// Calls a host at the current time.
    pub(crate) fn call(
        &mut self,
        host: Host,
        call: impl FnOnce(&mut Endpoint, &mut Moment<'_>, &mut Effects),
    ) -> Effects {
        let mut out = Effects::new();
        let endpoint = match host {
            Host::Client => &mut self.client,
            Host::Server => &mut self.server,
        };
        let chance = &mut self.chance;
        let mut entropy = |bytes: &mut [u8]| chance.fill(bytes);
        let mut moment = Moment {
            now: self.now,
            entropy: &mut entropy,
        };
        call(endpoint, &mut moment, &mut out);
        out
    }

    /// Performs the effects of a call of a host.
    pub(crate) fn perform(
        &mut self,
        host: Host,
        out: &Effects,
        delivery: &mut dyn FnMut() -> Delivery,
    ) {
        let mut provided = Vec::new();
        let mut shown = Vec::new();
        for effect in out.iter() {
            match effect {
                Effect::Send { peer, datagram } => {
                    let expected = self.address(other(host));
                    assert!(datagram.len() <= 1_500, "{} bytes", datagram.len());
                    self.sent.push((host, datagram.to_vec()));
                    // A datagram to an address that the client has left is lost.
                    for after in if peer == expected { delivery() } else { vec![] } {
                        self.serial += 1;
                        let key = (self.now.plus_ms(after), self.serial);
                        let from = self.address(host);
                        let datagram = (self.alter)(host, datagram.to_vec());
                        self.in_flight.insert(key, (host, from, datagram));
                    }
                }
                Effect::LookUpPsk {
                    association,
                    identity,
                } if self.look_up_ms == 0 => provided.push((association, identity.to_vec())),
                Effect::LookUpPsk {
                    association,
                    identity,
                } => {
                    self.serial += 1;
                    let key = (self.now.plus_ms(self.look_up_ms), self.serial);
                    self.look_ups.insert(key, (association, identity.to_vec()));
                }
                Effect::Established {
                    association,
                    identity,
                    security,
                    resumption,
                    cached,
                    ..
                } => {
                    self.cached.extend(cached.map(<[u8]>::to_vec));
                    match host {
                        Host::Server => self.server_association = Some(association),
                        Host::Client => self.resumption = resumption.cloned(),
                    }
                    let report = Report::Established(identity.clone(), security);
                    self.reports.push((host, report));
                }
                Effect::Received { content, .. } => {
                    self.reports
                        .push((host, Report::Received(content.to_vec())));
                }
                Effect::AdmitPublicKey {
                    association,
                    public_key,
                } => {
                    let is_known = self.public_keys.contains(public_key);
                    shown.push((association, is_known.then(Vec::new)));
                }
                Effect::AdmitCertificate { association, chain } => {
                    let now = self.now;
                    let found = chain.verify(&self.authorities, now);
                    self.certificate_faults.extend(found.err());
                    self.names_shown = chain.names();
                    let name = self.names_shown.first().map(|it| it.clone().into_bytes());
                    shown.push((association, name.filter(|_| found.is_ok())));
                }
                Effect::Moved { to, .. } => self.reports.push((host, Report::Moved(to))),
                Effect::Closed { reason, .. } => self.reports.push((host, Report::Closed(reason))),
                Effect::Failed { reason, .. } => self.reports.push((host, Report::Failed(reason))),
            }
        }
        for (id, admitted_as) in shown {
            let out = self.call(host, |endpoint, moment, out| match admitted_as {
                None => endpoint.refuse(id, out),
                // A raw public key is its own name.
                Some(name) if name.is_empty() => endpoint.admit(moment, id, out),
                Some(name) => endpoint.admit_as(moment, id, &name, out),
            });
            self.perform(host, &out, delivery);
        }
        for (id, identity) in provided {
            let out = self.provide(id, &identity);
            self.perform(host, &out, delivery);
        }
    }

    /// What a host has received, in order.
    pub(crate) fn received(&self, by: Host) -> Vec<&[u8]> {
        let mut contents = Vec::new();
        for report in self.reports_of(by) {
            if let Report::Received(content) = report {
                contents.push(&content[..]);
            }
        }
        contents
    }

    /// The last security that a host has reported.
    pub(crate) fn security(&self, of: Host) -> Security {
        let mut found = None;
        for report in self.reports_of(of) {
            if let Report::Established(_, security) = report {
                found = Some(*security);
            }
        }
        found.unwrap_or_else(|| panic!("{of:?} has no session: {:?}", self.reports))
    }

    pub(crate) fn failures(&self, of: Host) -> Vec<HandshakeFailure> {
        let mut failures = Vec::new();
        for report in self.reports_of(of) {
            if let Report::Failed(reason) = report {
                failures.push(*reason);
            }
        }
        failures
    }

    fn reports_of(&self, of: Host) -> impl Iterator<Item = &Report> {
        let reports = self.reports.iter().filter(move |(host, _)| *host == of);
        reports.map(|(_, report)| report)
    }

    fn provide(&mut self, id: AssociationId, identity: &[u8]) -> Effects {
        let keys = self.keys.get(identity).cloned().unwrap_or_default();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        self.call(Host::Server, |endpoint, moment, out| {
            endpoint.provide_psk(moment, id, &keys, out);
        })
    }

    fn address(&self, host: Host) -> SocketAddr {
        match host {
            Host::Client => self.client_address,
            Host::Server => self.server_address,
        }
    }

    fn next_event(&self) -> Option<Timestamp> {
        let arrival = self.in_flight.first_key_value().map(|(key, _)| key.0);
        let look_up = self.look_ups.first_key_value().map(|(key, _)| key.0);
        let timeouts = [self.client.next_timeout(), self.server.next_timeout()];
        let all = timeouts.into_iter().chain([arrival, look_up]);
        all.flatten().min()
    }
}

pub(crate) fn server_config() -> Config {
    Config {
        connection_id_prefix: (*b"s").into(),
        ..Config::new([1; 32])
    }
}

pub(crate) fn psk_client() -> ClientConfig {
    ClientConfig::with_psk(IDENTITY, KEY)
}

pub(crate) fn other(host: Host) -> Host {
    match host {
        Host::Client => Host::Server,
        Host::Server => Host::Client,
    }
}
