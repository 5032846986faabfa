-- Leases of partitions, so that several nodes serve devices.

ALTER TABLE delivery_lease RENAME TO partition_lease;
COMMENT ON TABLE partition_lease IS
    'Who serves the devices of a partition, which are 64 shards, and delivers to the destinations of it; in which epoch, and until when, as in shard_lease.';

COMMENT ON TABLE shard_lease IS
    'Which node is the active one, in which epoch (as in store_state), and until when by the clock of this server: one row for all shards. Without a node the lease was given up by the process in that place, at "ends_at".';
COMMENT ON COLUMN node.shares IS
    'Whether the node takes a part of the partitions: other nodes reach it, and it knows this schema.';
COMMENT ON TABLE shard_epoch IS
    'The newest epoch in which each shard was taken or written. The numbers from 1024 on are the partitions of destinations. Both are the epochs of partition_lease.';
