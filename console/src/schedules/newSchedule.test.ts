import { expect, test } from "vitest";

import type { NewRequest } from "../requests/newRequest";
import { dueText, scheduleOf } from "./newSchedule";

const read: NewRequest = {
  protocol: "LWM2M",
  body: { action: "read", resourceAddress: "/3/0/9", requestMode: "SEND_WHEN_ACTIVE" },
};

const typedAs = (texts: Record<string, string>) => (name: string) => texts[name];

test("a schedule is due at a time of day or at intervals", () => {
  const times = { at: "06:30", zone: "Europe/Berlin", every: "2", unit: "3600" };
  const request = { protocol: "LWM2M", ...read.body, filter: { tag: "site:berlin" } };
  const asked = { filter: { tag: "site:berlin" } };
  expect(scheduleOf("daily", typedAs({ ...times, name: "Battery" }), read, asked)).toEqual({
    name: "Battery",
    daily: { at: "06:30", zone: "Europe/Berlin" },
    request,
  });
  const end = "2026-11-24T12:00";
  expect(scheduleOf("every", typedAs({ ...times, end }), read, asked)).toEqual({
    every: 7_200,
    end: new Date(2026, 10, 24, 12).toISOString(),
    request,
  });
});

test("when a schedule is due is said in words", () => {
  const shared = { id: "", state: "ACTIVE", start: "", created: "" } as const;
  expect(dueText({ ...shared, every: 7_200 })).toBe("every 2 hours");
  expect(dueText({ ...shared, daily: { at: "06:30", zone: "Europe/Berlin" } })).toBe(
    "daily at 06:30 in Europe/Berlin",
  );
});
