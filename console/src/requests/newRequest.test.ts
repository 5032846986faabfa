import { expect, test } from "vitest";

import type { Schemas } from "../api/client";
import { curlOf, repetitionOf, requestOf } from "./newRequest";

const typedAs = (texts: Record<string, string>) => (name: string) => texts[name];

test("a typed request has what its protocol and its action take", () => {
  const address = "/3/0/15";
  const typed = typedAs({ action: "write", resourceAddress: address, data: "UTC", port: "5683" });
  expect(requestOf("LWM2M", typed)).toEqual({
    protocol: "LWM2M",
    body: { action: "write", resourceAddress: address, data: "UTC" },
  });
  const read = typedAs({ action: "read", resourceAddress: address, data: "UTC", expiresIn: "2" });
  expect(requestOf("LWM2M", read).body).toEqual({
    action: "read",
    resourceAddress: address,
    expiresIn: 7200,
  });
  const empty = typedAs({ action: "write", resourceAddress: address });
  expect(requestOf("LWM2M", empty).body).toMatchObject({ data: "" });
  const get = typedAs({ port: "5683", path: "/a", requestType: "GET", payloadType: "STRING" });
  expect(requestOf("COAP", get).body).toEqual({ port: 5683, path: "/a", requestType: "GET" });
  const datagram = typedAs({ port: "9", payload: "on", payloadType: "STRING", sendAttempts: "3" });
  expect(requestOf("UDP", datagram).body).toEqual({
    port: 9,
    payload: "on",
    payloadType: "STRING",
  });
});

const record = {
  protocol: "LWM2M",
  requestData: {
    action: "write",
    resourceAddress: "/3/0/15",
    data: "it's",
    requestMode: "SEND_WHEN_ACTIVE",
    sendAttempts: 2,
    notBefore: "2026-11-24T12:00:00.000Z",
    customerId: "acme",
    deviceId: "meter 1",
    iccid: "8988",
    requestId: "1",
    traceId: "2",
  },
} as unknown as Schemas["ActionRequest"];

test("a repetition asks for the same, without what the service added", () => {
  expect(repetitionOf(record)).toEqual({
    protocol: "LWM2M",
    body: {
      action: "write",
      resourceAddress: "/3/0/15",
      data: "it's",
      requestMode: "SEND_WHEN_ACTIVE",
      sendAttempts: 2,
    },
  });
  const long = { ...record, omitted: ["requestData.data" as const] };
  expect(repetitionOf(long)).toBeUndefined();
});

test("a command line survives the shell", () => {
  const body = { action: "write" as const, resourceAddress: "/3/0/15", data: "it's" };
  expect(curlOf("https://a.example", "meter 1", { protocol: "LWM2M", body })).toBe(
    `curl -X POST https://a.example/management-api/v1/integrate/devices/meter%201/actions/LWM2M \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"action":"write","resourceAddress":"/3/0/15","data":"it'\\''s"}'`,
  );
});
