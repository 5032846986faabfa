import { expect, test } from "vitest";

import { changeOf, newDeviceOf } from "./typedDevice";

const device = {
  deviceId: "meter-1",
  iccid: "meter-1",
  endpoint: "meter-1",
  name: "Meter",
  number: 1,
  created: "2026-11-24T12:00:00.000Z",
  security: "ANY" as const,
  psk: { configured: false, identity: "meter-1" },
  tags: { site: "berlin", floor: "2" },
};

const typedAs = (texts: Record<string, string>) => (name: string) => texts[name];

const same = { iccid: "meter-1", endpoint: "meter-1", security: "ANY" };

test("only what was changed is sent, and a tag that is gone is removed", () => {
  const untouched = { ...same, name: "Meter", tags: "site:berlin floor:2" };
  expect(changeOf(typedAs(untouched), device)).toEqual({ body: {} });
  const typed = typedAs({ ...same, msisdn: "491", offlineAfter: "60", tags: "site:hamburg" });
  expect(changeOf(typed, device)).toEqual({
    body: { name: null, msisdn: "491", offlineAfter: 60, tags: { site: "hamburg", floor: null } },
  });
  expect(changeOf(typedAs({ tags: "berlin" }), device)).toEqual({ fault: "berlin" });
});

test("a new device has what was typed", () => {
  const typed = typedAs({
    deviceId: "meter-2",
    security: "DTLS",
    offlineAfter: "60",
    tags: "site:berlin",
  });
  expect(newDeviceOf(typed)).toEqual({
    body: { deviceId: "meter-2", security: "DTLS", offlineAfter: 60, tags: { site: "berlin" } },
  });
});
