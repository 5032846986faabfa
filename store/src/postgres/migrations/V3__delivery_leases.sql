-- Leases of the deliveries, so that several nodes deliver.

ALTER TABLE node ADD COLUMN shares boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN node.shares IS
    'Whether the node takes a part of the deliveries: other nodes reach it, and it knows this schema.';

CREATE TABLE delivery_lease (
    partition integer PRIMARY KEY CHECK (0 <= partition AND partition < 16),
    node uuid,
    place text NOT NULL DEFAULT '',
    epoch bigint NOT NULL DEFAULT 0,
    ends_at timestamptz NOT NULL DEFAULT 'epoch'
) WITH (fillfactor = 50);
COMMENT ON TABLE delivery_lease IS
    'Who delivers to the destinations of a partition, in which epoch, and until when, as in shard_lease.';
INSERT INTO delivery_lease (partition) SELECT generate_series(0, 15);

COMMENT ON TABLE shard_epoch IS
    'The newest epoch in which each shard was written. The numbers from 1024 on are the partitions of delivery_lease, each with its newest epoch.';
