//! How are datagrams handed to arbiters? In batches, each for one arbiter and of one kind.

use engine::dispatch::shard_map::ArbiterId;
use engine::peer::{Peer, Transport};

/// Datagrams with their peers, all of them records of DTLS or none. They are in one buffer, so that
/// a batch takes two allocations.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    bytes: Vec<u8>,
    /// The peer of each, and where it ends.
    ends: Vec<(Peer, usize)>,
}

impl Datagrams {
    fn put(&mut self, peer: Peer, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((peer, self.bytes.len()));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether they are records of DTLS.
    pub(crate) fn are_records(&self) -> bool {
        let first = self.ends.first();
        first.is_some_and(|(peer, _)| peer.transport == Transport::Coaps)
    }

    /// Each with its peer.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Peer, &[u8])> {
        let mut begin = 0;
        self.ends.iter().map(move |(peer, end)| {
            let datagram = self.bytes.get(begin..*end).unwrap_or_default();
            begin = *end;
            (*peer, datagram)
        })
    }
}

/// Datagrams by the arbiter that receives them.
#[derive(Debug, Default)]
pub(crate) struct SortedDatagrams(Vec<(ArbiterId, Datagrams)>);

impl SortedDatagrams {
    /// Adds one.
    pub(crate) fn put(&mut self, arbiter: ArbiterId, peer: Peer, datagram: &[u8]) {
        let is_record = peer.transport == Transport::Coaps;
        let is_like = |(to, batch): &&mut (ArbiterId, Datagrams)| {
            *to == arbiter && batch.are_records() == is_record
        };
        if let Some((_, batch)) = self.0.iter_mut().find(is_like) {
            return batch.put(peer, datagram);
        }
        let mut batch = Datagrams::default();
        batch.put(peer, datagram);
        self.0.push((arbiter, batch));
    }
}

impl IntoIterator for SortedDatagrams {
    type Item = (ArbiterId, Datagrams);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use engine::dispatch::shard_map::ShardMap;

    use super::*;

    #[test]
    fn a_batch_is_for_one_arbiter_and_of_one_kind() {
        let arbiters: Vec<ArbiterId> = ShardMap::among(2).arbiters().collect();
        let address: SocketAddr = "10.0.0.1:5683".parse().unwrap();
        let (plain, secured) = (Peer::plain(address), Peer::secured(address));
        let mut sorted = SortedDatagrams::default();
        for (arbiter, peer, datagram) in [
            (0, plain, &b"one"[..]),
            (1, plain, b""),
            (0, secured, b"record"),
            (0, plain, b"two"),
        ] {
            sorted.put(arbiters[arbiter], peer, datagram);
        }
        let batches = sorted.into_iter().map(|(arbiter, batch)| {
            let datagrams = batch.iter().map(|(_, datagram)| datagram.to_vec());
            let datagrams: Vec<_> = datagrams.collect();
            assert_eq!(datagrams.len(), batch.len());
            (arbiter.index(), batch.are_records(), datagrams)
        });
        let expected = [
            (0, false, vec![b"one".to_vec(), b"two".to_vec()]),
            (1, false, vec![b"".to_vec()]),
            (0, true, vec![b"record".to_vec()]),
        ];
        assert!(batches.eq(expected));
    }
}
