-- The schema of signalbox on PostgreSQL 15 and later.
--
-- What is filtered, ordered, counted or compared has a column. The rest of a record is in `record`,
-- in the encoding that the embedded engine has as well (store/src/record), with its version.
-- Codes of choices (status, protocol, category, ...) are those of store/src/record/code.rs.
-- Keys of devices are the first 16 bytes of a SHA-256 digest, stored as uuid for its size. Ids that
-- are UUIDs of version 7 sort by the time they were made. Nothing names a schema: search_path
-- decides.

-- The state of the whole store -------------------------------------------------------------------

CREATE TABLE store_state (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch bigint NOT NULL DEFAULT 0,
    server_key bytea
);
COMMENT ON TABLE store_state IS
    'One row: the newest epoch in which a process took the shards over, and the sealed private key of the service. Each group of commits locks it FOR SHARE, so that a take-over waits for the groups it fences off.';
INSERT INTO store_state DEFAULT VALUES;

CREATE TABLE shard_epoch (
    shard integer PRIMARY KEY,
    epoch bigint NOT NULL
);
COMMENT ON TABLE shard_epoch IS 'The newest epoch in which each shard was written.';

CREATE TABLE committer (
    id uuid PRIMARY KEY,
    last_group bigint NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10);
COMMENT ON TABLE committer IS
    'One row for each process that has the store open: the number of its last group of commits, written first in the transaction of the group. After a lost connection it tells whether the group is durable. Rows of ended processes are deleted after a day.';

CREATE TABLE event_sequence (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    newest bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
COMMENT ON TABLE event_sequence IS
    'One row: the newest number of an event. A group that has events locks it, so that events become visible in the order of their numbers; a sequence would not do that.';
INSERT INTO event_sequence DEFAULT VALUES;

-- Customers and API clients ----------------------------------------------------------------------

CREATE TABLE customer (
    id text COLLATE "C" PRIMARY KEY,
    record bytea NOT NULL
);
COMMENT ON TABLE customer IS 'Customers.';

CREATE TABLE removed_customer (
    customer text COLLATE "C" PRIMARY KEY,
    last_entry uuid NOT NULL,
    last_event bigint NOT NULL
);
COMMENT ON TABLE removed_customer IS
    'Customers that were removed and whose log or events are not swept yet: up to this entry and this event they belong to nobody. A later customer with the same id begins behind them.';

CREATE TABLE api_client (
    id text COLLATE "C" PRIMARY KEY,
    customer text COLLATE "C",
    record bytea NOT NULL
);
COMMENT ON TABLE api_client IS 'API clients; those without customer are of the operator.';
-- The clients of an owner, by id.
CREATE INDEX api_client_of_customer ON api_client (customer, id);

CREATE TABLE access_token (
    digest bytea PRIMARY KEY,
    client text COLLATE "C" NOT NULL,
    expires_at timestamptz NOT NULL,
    record bytea NOT NULL
);
COMMENT ON TABLE access_token IS 'Access tokens by the digest of their secret.';
-- Removed with their client.
CREATE INDEX access_token_of_client ON access_token (client);
-- Swept when they have expired.
CREATE INDEX access_token_by_expiry ON access_token (expires_at);

CREATE TABLE setting (
    customer text COLLATE "C" NOT NULL,
    name smallint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (customer, name)
);
COMMENT ON TABLE setting IS 'The settings that a customer has changed.';

CREATE TABLE definition (
    customer text COLLATE "C" NOT NULL,
    object integer NOT NULL,
    major smallint NOT NULL,
    minor smallint NOT NULL,
    stored_at timestamptz NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (customer, object, major, minor)
);
COMMENT ON TABLE definition IS 'Definitions of objects: OMA XML, compressed.';

CREATE TABLE removed_definition (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    record bytea NOT NULL
);
COMMENT ON TABLE removed_definition IS
    'Definitions of removed customers, until they are swept: a later customer with the same id may have its own.';

CREATE TABLE customer_bootstrap_config (
    customer text COLLATE "C" PRIMARY KEY,
    record bytea NOT NULL
);
COMMENT ON TABLE customer_bootstrap_config IS
    'What the devices of a customer are given when they are bootstrapped.';

-- Devices ----------------------------------------------------------------------------------------

CREATE TABLE device (
    key uuid PRIMARY KEY,
    customer text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    address inet,
    flags smallint NOT NULL DEFAULT 0,
    record bytea NOT NULL
);
COMMENT ON TABLE device IS
    'Profiles of devices, and by what lists select them. Every column but flags changes only when somebody edits the device.';
COMMENT ON COLUMN device.flags IS
    'Bits: 1 registered; 2, 4, 8 ever seen over UDP, CoAP, LwM2M. They follow from device_state.record and change with it.';
COMMENT ON COLUMN device.address IS
    'The address of a device that has one of its own; an IPv4 address that is mapped to IPv6 as the IPv4 address.';
-- The devices of a customer, by id.
CREATE UNIQUE INDEX device_of_customer ON device (customer, device_id);
-- Those with some flags, by id, read from the index alone; how many there are of each.
CREATE INDEX device_by_flags ON device (customer, flags, device_id) INCLUDE (key);
-- The devices with an address, and whether another customer has it.
CREATE INDEX device_at_address ON device (address, key) WHERE address IS NOT NULL;

CREATE TABLE device_name (
    kind smallint NOT NULL,
    name bytea NOT NULL,
    device uuid NOT NULL,
    PRIMARY KEY (kind, name)
);
COMMENT ON TABLE device_name IS
    'The names of devices that are unique among all customers: 1 ICCID, 2 IMSI, 3 MSISDN, 4 endpoint client name, 5 PSK identity, 6 raw public key. Bytes, because the last two may be any.';
-- Removed with the device.
CREATE INDEX device_name_of_device ON device_name (device);

CREATE TABLE device_tag (
    customer text COLLATE "C" NOT NULL,
    tag_key text COLLATE "C" NOT NULL,
    tag_value text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    device uuid NOT NULL,
    -- A list is read from the index alone.
    PRIMARY KEY (customer, tag_key, tag_value, device_id) INCLUDE (device)
);
COMMENT ON TABLE device_tag IS 'The tags of devices: the devices with a tag, by id.';
-- Removed with the device.
CREATE INDEX device_tag_of_device ON device_tag (device);

CREATE TABLE device_state (
    device uuid PRIMARY KEY,
    live boolean NOT NULL,
    record bytea NOT NULL
) WITH (fillfactor = 70);
COMMENT ON TABLE device_state IS
    'What the actor of a device saved last: written with nearly every message of the device, so no index has what changes often, and updates stay within their page.';
COMMENT ON COLUMN device_state.live IS
    'Whether the device is restored at a start: it is registered, or goes offline unless it is heard.';
-- The devices that a start restores, in the order of their keys.
CREATE INDEX device_state_live ON device_state (device) WHERE live;

CREATE TABLE device_bootstrap_config (
    device uuid PRIMARY KEY,
    record bytea NOT NULL
);
COMMENT ON TABLE device_bootstrap_config IS 'What one device is given when it is bootstrapped.';

CREATE TABLE bootstrap (
    device uuid PRIMARY KEY,
    record bytea NOT NULL
);
COMMENT ON TABLE bootstrap IS 'The last bootstrap of each device.';

CREATE TABLE known_value (
    device uuid NOT NULL,
    path bytea NOT NULL,
    measured_at timestamptz NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (device, path)
) WITH (fillfactor = 80);
COMMENT ON TABLE known_value IS
    'The last known value of each path of a device. A path is two bytes for each of its numbers, so that paths sort as numbers.';

CREATE TABLE device_count (
    customer text COLLATE "C" NOT NULL,
    slot smallint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (customer, slot)
) WITH (fillfactor = 50);
COMMENT ON TABLE device_count IS
    'How many devices a customer has: the sum over the slots. A process adds to one slot, so that processes do not wait for each other.';

-- Action requests --------------------------------------------------------------------------------

CREATE TABLE action (
    id uuid PRIMARY KEY,
    customer text COLLATE "C" NOT NULL,
    device uuid NOT NULL,
    protocol smallint NOT NULL,
    status smallint NOT NULL,
    updated_at timestamptz NOT NULL,
    record bytea NOT NULL
);
COMMENT ON TABLE action IS
    'Action requests. The id tells when a request was created. Status: 1 scheduled, 2 in progress, 3 succeeded, 4 failed, 5 cancelled.';
-- The requests of a customer of a protocol in a status, by creation; a list of several merges.
CREATE INDEX action_by_creation ON action (customer, protocol, status, id);
-- The same by their last change.
CREATE INDEX action_by_update ON action (customer, protocol, status, updated_at, id);
-- The requests of a device, and how many.
CREATE INDEX action_of_device ON action (device, protocol, status, id);
-- Those that are not final: restored with the device.
CREATE INDEX action_pending ON action (device, id) WHERE status <= 2;

CREATE TABLE action_count (
    customer text COLLATE "C" NOT NULL,
    protocol smallint NOT NULL,
    status smallint NOT NULL,
    slot smallint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (customer, protocol, status, slot)
) WITH (fillfactor = 50);
COMMENT ON TABLE action_count IS
    'How many action requests a customer has of a protocol in a status: the sum over the slots, as in device_count. Those of one device are counted in action.';

CREATE TABLE idempotency (
    key uuid NOT NULL,
    device uuid NOT NULL,
    device_number bigint NOT NULL,
    made_at timestamptz NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (key, device, device_number)
);
COMMENT ON TABLE idempotency IS
    'Idempotency records by key: one for each device for which the call created a request, or one with the nil device for the whole call.';
-- Swept when they are old.
CREATE INDEX idempotency_by_age ON idempotency (made_at);

-- The administration log -------------------------------------------------------------------------

CREATE TABLE log_entry (
    customer text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    category smallint NOT NULL,
    subject smallint NOT NULL,
    device uuid,
    record bytea NOT NULL,
    payload bytea,
    -- Lists, totals and statistics of a customer's log within a time; read from the index alone.
    PRIMARY KEY (customer, id) INCLUDE (category, subject, device)
) PARTITION BY RANGE (id);
COMMENT ON TABLE log_entry IS
    'Entries of the administration log, a partition for each day of their ids. Category: 1 error, 2 info. Subject: 1 device, 2 lifecycle, 3 integration, 4 general.';
-- The log of a SIM, and the last entry about a device.
CREATE INDEX log_entry_of_device ON log_entry (device, id) WHERE device IS NOT NULL;
-- Swept when they are old and of a day that is not. Entries arrive in the order of their ids.
CREATE INDEX log_entry_by_age ON log_entry USING brin (id) WITH (autosummarize = on);

CREATE TABLE former_sim (
    customer text COLLATE "C" NOT NULL,
    iccid text COLLATE "C" NOT NULL,
    device uuid NOT NULL,
    last_entry uuid NOT NULL,
    PRIMARY KEY (customer, iccid, device)
);
COMMENT ON TABLE former_sim IS
    'The devices that had a SIM, while the log has entries about them: the log of a SIM is that of the device that has it and of these.';
-- Swept with the last entry.
CREATE INDEX former_sim_by_age ON former_sim (last_entry);

-- Events and their delivery ----------------------------------------------------------------------

CREATE TABLE event (
    id uuid NOT NULL,
    sequence bigint NOT NULL,
    customer text COLLATE "C" NOT NULL,
    partition smallint NOT NULL,
    device uuid NOT NULL,
    event_type smallint NOT NULL,
    lifecycle smallint,
    record bytea NOT NULL,
    -- One event that is delivered.
    PRIMARY KEY (id, sequence)
) PARTITION BY RANGE (id);
COMMENT ON TABLE event IS
    'Events of devices, a partition for each day of their ids. The sequence number orders all events; events are delivered in its order within each of the 16 partitions (column partition) of a customer.';
-- The events that wait for a destination, in order, and how many.
CREATE INDEX event_queue ON event (customer, partition, sequence);
-- The history of a device, newest first; its last reports are read from the index alone.
CREATE INDEX event_of_device ON event (device, sequence) INCLUDE (id, event_type);

CREATE TABLE removed_history (
    device uuid PRIMARY KEY,
    last_event bigint NOT NULL
);
COMMENT ON TABLE removed_history IS
    'Up to this number the events of a device key are of a removed device and are not shown.';

CREATE TABLE destination (
    id uuid PRIMARY KEY,
    customer text COLLATE "C" NOT NULL,
    since bigint NOT NULL,
    record bytea NOT NULL
);
COMMENT ON TABLE destination IS
    'Destinations of events. One begins behind the event that was the newest when it was created (since).';
-- The destinations of a customer, by id.
CREATE INDEX destination_of_customer ON destination (customer, id);

CREATE TABLE removed_destination (
    id uuid PRIMARY KEY
);
COMMENT ON TABLE removed_destination IS
    'Destinations that were removed and whose cursors, retries and dead letters are not swept yet. None of them is created again.';

CREATE TABLE destination_cursor (
    destination uuid NOT NULL,
    partition smallint NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (destination, partition)
) WITH (fillfactor = 50);
COMMENT ON TABLE destination_cursor IS
    'Up to which event a partition is done for a destination; retries apart.';

CREATE TABLE pending_retry (
    destination uuid NOT NULL,
    sequence bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (destination, sequence)
);
COMMENT ON TABLE pending_retry IS 'Events that are to be tried again.';

CREATE TABLE dead_letter (
    destination uuid NOT NULL,
    sequence bigint NOT NULL,
    dead_at timestamptz NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (destination, sequence)
);
COMMENT ON TABLE dead_letter IS 'Events that a destination did not accept.';
-- Swept when they are old.
CREATE INDEX dead_letter_by_age ON dead_letter (dead_at);

-- Jobs and schedules -----------------------------------------------------------------------------

CREATE TABLE job (
    id uuid PRIMARY KEY,
    customer text COLLATE "C" NOT NULL,
    running boolean NOT NULL,
    record bytea NOT NULL
);
COMMENT ON TABLE job IS 'Jobs: one request for many devices.';
-- The jobs of a customer, newest first, and how many.
CREATE INDEX job_of_customer ON job (customer, id);
-- The jobs that a start continues.
CREATE INDEX job_running ON job (id) WHERE running;

CREATE TABLE job_request (
    job uuid PRIMARY KEY,
    record bytea NOT NULL
);
COMMENT ON TABLE job_request IS
    'The request that a job creates. It is stored before its job, so it may have none.';

CREATE TABLE job_part (
    job uuid NOT NULL,
    part bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (job, part)
);
COMMENT ON TABLE job_part IS
    'The devices of a job, a part in each row. They are stored before their job, so they may have none.';

CREATE TABLE removed_job (
    id uuid PRIMARY KEY
);
COMMENT ON TABLE removed_job IS 'Jobs that were removed and whose parts are not swept yet.';

CREATE TABLE schedule (
    customer text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (customer, id)
);
COMMENT ON TABLE schedule IS 'Schedules of jobs.';

CREATE TABLE schedule_contents (
    schedule uuid PRIMARY KEY,
    record bytea NOT NULL
);
COMMENT ON TABLE schedule_contents IS 'What the jobs of a schedule request of which devices.';

-- SMS --------------------------------------------------------------------------------------------

CREATE TABLE sms (
    id bigint PRIMARY KEY,
    device_number bigint NOT NULL,
    due_at timestamptz,
    for_network boolean NOT NULL,
    wake_up boolean NOT NULL,
    record bytea NOT NULL
);
COMMENT ON TABLE sms IS
    'SMS from and to devices. The id tells when it was made. due_at is the end of the validity of one to a device, null once its status is final; for_network: the network has something to do for it.';
-- The SMS of a device, newest first, and how many; removed with the device.
CREATE INDEX sms_of_device ON sms (device_number, id);
-- Those that wake a device.
CREATE INDEX sms_wake_up ON sms (device_number, id) WHERE wake_up;
-- Those to a device without a final status.
CREATE INDEX sms_open ON sms (device_number, id) WHERE due_at IS NOT NULL;
-- Those whose validity is over.
CREATE INDEX sms_by_due ON sms (due_at, id) WHERE due_at IS NOT NULL;
-- Those for which the network has something to do.
CREATE INDEX sms_for_network ON sms (id) WHERE for_network;

CREATE TABLE sms_id (
    id bigint PRIMARY KEY,
    sms bigint NOT NULL REFERENCES sms ON DELETE CASCADE
);
COMMENT ON TABLE sms_id IS 'The ids under which an SMS is found: its own and those of its parts.';
CREATE INDEX sms_id_of_sms ON sms_id (sms);

CREATE TABLE sms_message (
    message_id text COLLATE "C" NOT NULL,
    sms bigint NOT NULL REFERENCES sms ON DELETE CASCADE,
    PRIMARY KEY (message_id, sms)
);
COMMENT ON TABLE sms_message IS
    'The ids under which an SMS centre accepted the parts of SMS without a final status.';
CREATE INDEX sms_message_of_sms ON sms_message (sms);

CREATE TABLE sms_parts (
    device_number bigint NOT NULL,
    total smallint NOT NULL,
    identifier integer NOT NULL,
    sms bigint NOT NULL REFERENCES sms ON DELETE CASCADE,
    PRIMARY KEY (device_number, total, identifier)
);
COMMENT ON TABLE sms_parts IS 'The last SMS of a device with parts of this reference.';
CREATE INDEX sms_parts_of_sms ON sms_parts (sms);

-- Firmware ---------------------------------------------------------------------------------------

CREATE TABLE firmware_image (
    customer text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (customer, id)
);
COMMENT ON TABLE firmware_image IS 'Firmware images; their bytes are in files.';

CREATE TABLE campaign (
    id uuid PRIMARY KEY,
    customer text COLLATE "C" NOT NULL,
    open boolean NOT NULL,
    record bytea NOT NULL
);
COMMENT ON TABLE campaign IS 'Firmware campaigns.';
-- The campaigns of a customer, newest first, and how many.
CREATE INDEX campaign_of_customer ON campaign (customer, id);
-- The campaigns that a start continues.
CREATE INDEX campaign_open ON campaign (id) WHERE open;

CREATE TABLE campaign_device (
    campaign uuid NOT NULL,
    place bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (campaign, place)
);
COMMENT ON TABLE campaign_device IS 'The devices of a campaign, in the order in which they begin.';

CREATE TABLE campaign_device_count (
    campaign uuid NOT NULL,
    state smallint NOT NULL,
    slot smallint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (campaign, state, slot)
) WITH (fillfactor = 50);
COMMENT ON TABLE campaign_device_count IS
    'How many devices of a campaign are in a state: the sum over the slots, as in device_count.';
