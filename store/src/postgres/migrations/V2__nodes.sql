-- The nodes of a service, and which of them has the lease of which shards.

CREATE TABLE node (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    place text NOT NULL,
    version text NOT NULL,
    addresses text[] NOT NULL,
    lease_ms integer NOT NULL,
    draining boolean NOT NULL DEFAULT false,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
COMMENT ON TABLE node IS
    'One row for each process that is active or stands by, with when it was heard last by the clock of this server. "place" is its data directory on its machine since the start of that: of two processes there the earlier one has ended. Rows of nodes that were not heard for a day are deleted.';

CREATE TABLE shard_lease (
    first_shard integer PRIMARY KEY,
    last_shard integer NOT NULL,
    node uuid,
    place text NOT NULL DEFAULT '',
    epoch bigint NOT NULL DEFAULT 0,
    ends_at timestamptz NOT NULL DEFAULT 'epoch',
    CHECK (0 <= first_shard AND first_shard <= last_shard AND last_shard < 1024),
    EXCLUDE USING gist (int4range(first_shard, last_shard, '[]') WITH &&)
) WITH (fillfactor = 50);
COMMENT ON TABLE shard_lease IS
    'Who serves a range of shards, in which epoch (as in store_state), and until when by the clock of this server. Without a node the lease was given up by the process in that place, at "ends_at". The ranges are disjoint and cover all 1,024 shards.';
INSERT INTO shard_lease (first_shard, last_shard) VALUES (0, 1023);
