import { expect, test } from "vitest";

import { perMinute, readingOf } from "./figures";

const text = (received: number) => `# HELP signalbox_datagrams_received_total Datagrams.
# TYPE signalbox_datagrams_received_total counter
signalbox_datagrams_received_total{arbiter="0",type="CON",code="POST"} ${received}
signalbox_datagrams_received_total{arbiter="1",type="CON",code="POST"} 2
signalbox_devices_known{registration="registered"} 3
signalbox_devices_known{registration="unregistered"} 1
signalbox_store_fsync_seconds_sum 0.5
signalbox_store_fsync_seconds_count 100
signalbox_events_written_total 7
`;

test("metrics are summed over their labels", () => {
  const reading = readingOf(text(5), 0);
  expect(reading.counted).toMatchObject({ received: 7, events: 7, called: 0 });
  expect(reading).toMatchObject({ registered: 3, unregistered: 1, fsyncMs: 5 });
  expect(readingOf("", 0).fsyncMs).toBeUndefined();
});

test("a counter is shown by its growth within a minute, but not across a restart", () => {
  const readings = [readingOf(text(5), 0), readingOf(text(8), 30_000), readingOf(text(0), 60_000)];
  expect(perMinute(readings, "received")).toEqual([{ time: 30_000, value: 6 }]);
  expect(perMinute(readings.slice(0, 1), "received")).toEqual([]);
});
