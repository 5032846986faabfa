import { expect, test } from "vitest";

import { bytesText, perMinute, readingOf } from "./figures";

const text = (received: number) => `# HELP signalbox_datagrams_received_total Datagrams.
# TYPE signalbox_datagrams_received_total counter
signalbox_datagrams_received_total{arbiter="0",type="CON",code="POST"} ${received}
signalbox_datagrams_received_total{arbiter="1",type="CON",code="POST"} 2
signalbox_devices_known{registration="registered"} 3
signalbox_devices_known{registration="unregistered"} 1
signalbox_store_fsync_seconds_sum 0.5
signalbox_store_fsync_seconds_count 100
signalbox_events_written_total 7
signalbox_store_disk_free_bytes 12000000000
signalbox_store_file_bytes 524288
`;

test("metrics are summed over their labels", () => {
  const reading = readingOf(text(5), 0);
  expect(reading.counted).toMatchObject({ received: 7, events: 7, called: 0 });
  expect(reading).toMatchObject({ registered: 3, unregistered: 1, fsyncMs: 5 });
  expect(reading).toMatchObject({ freeBytes: 12_000_000_000, storeBytes: 524_288 });
  expect(readingOf("", 0).fsyncMs).toBeUndefined();
});

test("bytes are shown in decimal units", () => {
  const shown = [0, 999, 524_288, 12_000_000_000, 5e15].map(bytesText);
  expect(shown).toEqual(["0 bytes", "999 bytes", "524.3 kB", "12.0 GB", "5000.0 TB"]);
});

test("a counter is shown by its growth within a minute, but not across a restart", () => {
  const readings = [readingOf(text(5), 0), readingOf(text(8), 30_000), readingOf(text(0), 60_000)];
  expect(perMinute(readings, "received")).toEqual([{ time: 30_000, value: 6 }]);
  expect(perMinute(readings.slice(0, 1), "received")).toEqual([]);
});
