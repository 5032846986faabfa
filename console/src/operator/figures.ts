// What do the metrics of the service say to people? Sums over arbiters, and what changed within a minute.
import type { Point } from "../ui/scale";

/** The value of a metric with some labels. */
interface Sample {
  name: string;
  labels: string;
  value: number;
}

/** The samples of a text in the format of Prometheus. */
export function samplesOf(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, labels, value: Number(value) }];
  });
}

/** The sum of a metric, or of its samples with a label. */
export function sumOf(samples: readonly Sample[], name: string, label = ""): number {
  const counted = samples.filter((it) => it.name === name && it.labels.includes(label));
  return counted.reduce((sum, { value }) => sum + value, 0);
}

/** What only grows, and is looked at by how much it grows within a minute. */
export const counters = [
  ["received", "Datagrams received", "signalbox_datagrams_received_total"],
  ["called", "Calls of the API", "signalbox_http_requests_total"],
  ["finished", "Requests that became final", "signalbox_actions_finished_total"],
  ["events", "Events", "signalbox_events_written_total"],
  ["deliveries", "Tries to deliver an event", "signalbox_deliveries_total"],
  ["changes", "Changes in the store", "signalbox_store_changes_total"],
  ["writes", "Writes of the store to the disk", "signalbox_store_groups_total"],
] as const;

export type Counter = (typeof counters)[number][0];

/** What the metrics said at a time. */
export interface Reading {
  at: number;
  counted: Record<Counter, number>;
  registered: number;
  unregistered: number;
  waiting: number;
  failedDestinations: number;
  deadLetters: number;
  queuedBatches: number;
  /** The free bytes of the disk, and those of the store. */
  freeBytes: number;
  storeBytes: number;
  /** How long a write to the disk took on average since the start, if there was one. */
  fsyncMs: number | undefined;
}

export function readingOf(text: string, at: number): Reading {
  const samples = samplesOf(text);
  const counted = counters.map(([counter, , name]) => [counter, sumOf(samples, name)]);
  const fsyncs = sumOf(samples, "signalbox_store_fsync_seconds_count");
  return {
    at,
    counted: Object.fromEntries(counted) as Record<Counter, number>,
    registered: sumOf(samples, "signalbox_devices_known", 'registration="registered"'),
    unregistered: sumOf(samples, "signalbox_devices_known", 'registration="unregistered"'),
    waiting: sumOf(samples, "signalbox_actions_waiting"),
    failedDestinations: sumOf(samples, "signalbox_destinations", 'state="failed"'),
    deadLetters: sumOf(samples, "signalbox_dead_letters"),
    queuedBatches: sumOf(samples, "signalbox_store_queue_batches"),
    freeBytes: sumOf(samples, "signalbox_store_disk_free_bytes"),
    storeBytes: sumOf(samples, "signalbox_store_file_bytes"),
    fsyncMs:
      fsyncs === 0
        ? undefined
        : (sumOf(samples, "signalbox_store_fsync_seconds_sum") / fsyncs) * 1_000,
  };
}

/** Bytes in the largest decimal unit of which there is at least one. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const place = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  const decimals = place === 0 ? 0 : 1;
  return `${(bytes / 1_000 ** place).toFixed(decimals)} ${units[place]}`;
}

/** By how much a counter grew within a minute, between each reading and the next one. */
export function perMinute(readings: readonly Reading[], counter: Counter): Point[] {
  return readings.slice(1).flatMap((reading, index) => {
    const before = readings[index];
    if (before === undefined || reading.at <= before.at) return [];
    const growth = reading.counted[counter] - before.counted[counter];
    // A restart begins anew.
    if (growth < 0) return [];
    return [{ time: reading.at, value: (growth * 60_000) / (reading.at - before.at) }];
  });
}
