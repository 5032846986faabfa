// How are times read and shown? The API gives UTC in three spellings; people see their own zone.

/** The time of a text of the API: ISO 8601, `2026-11-24 12:00:00.000` or Unix milliseconds. */
export function timeOf(text: string): Date {
  if (/^\d+$/.test(text)) return new Date(Number(text));
  const iso = text.replace(" ", "T");
  return new Date(/(Z|[+-]\d\d:\d\d)$/.test(iso) ? iso : `${iso}Z`);
}

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** A time in the zone of the viewer. */
export function localTime(time: Date): string {
  return local.format(time);
}

/** The same time in UTC, as in the API. */
export function utcTime(time: Date): string {
  return time.toISOString().replace("T", " ").replace("Z", " UTC");
}

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

/** How long ago a time was, in its largest unit. */
export function ageOf(time: Date, now: number): string {
  const seconds = Math.round((time.getTime() - now) / 1_000);
  if (Math.abs(seconds) < 2) return "just now";
  const step = steps.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / step[1]), step[0]);
}

/** A duration in its two largest units. */
export function durationOf(seconds: number): string {
  const parts = [];
  let left = seconds;
  for (const [unit, length] of steps) {
    const count = Math.floor(left / length);
    left -= count * length;
    if (count > 0) parts.push(`${count} ${unit}${count === 1 ? "" : "s"}`);
  }
  return parts.slice(0, 2).join(" ") || "0 seconds";
}
