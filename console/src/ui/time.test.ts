import { expect, test } from "vitest";

import { ageOf, durationOf, timeOf, utcTime } from "./time";

test("every spelling of a time in the API is read as UTC", () => {
  const expected = Date.UTC(2026, 10, 24, 12, 0, 0, 5);
  for (const text of [
    "2026-11-24T12:00:00.005Z",
    "2026-11-24 12:00:00.005",
    "2026-11-24T12:00:00.005",
    "2026-11-24T14:00:00.005+02:00",
    String(expected),
  ]) {
    expect(timeOf(text).getTime(), text).toBe(expected);
  }
  expect(utcTime(new Date(expected))).toBe("2026-11-24 12:00:00.005 UTC");
});

test("an age has its largest unit", () => {
  const now = Date.UTC(2026, 10, 24);
  const ages = [1, 59, 119, 7_300, 200_000].map((s) => ageOf(new Date(now - s * 1_000), now));
  expect(ages).toEqual(["just now", "59 sec. ago", "1 min. ago", "2 hr. ago", "2 days ago"]);
  expect(ageOf(new Date(now + 61_000), now)).toBe("in 1 min.");
});

test("a duration has its two largest units", () => {
  expect([0, 61, 3_600, 90_061].map(durationOf)).toEqual([
    "0 seconds",
    "1 minute 1 second",
    "1 hour",
    "1 day 1 hour",
  ]);
});
