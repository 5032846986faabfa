import { expect, test } from "vitest";

import { type Message, pointsOf, rowsOf } from "./history";

const path = "/3303/0/5700";
const values = (minute: number, value: unknown, measured?: string) =>
  ({
    id: `${minute}`,
    type: "TELEMETRY_DATA",
    source: "LWM2M",
    cause: { type: "SEND" },
    time: `2026-11-24T12:0${minute}:00.000Z`,
    received: "0",
    payload: { type: "JSON", value: { [path]: value, "/3303/0/5701": "Cel" } },
    ...(measured === undefined ? {} : { measured }),
  }) as unknown as Message;

test("a chart has the numbers of its path in the order in which they were measured", () => {
  const noon = Date.UTC(2026, 10, 24, 12);
  const messages = [values(3, 23), values(2, 22, `${noon - 60_000}`), values(1, null)];
  expect(pointsOf(messages, path)).toEqual([
    { time: noon - 60_000, value: 22 },
    { time: noon + 180_000, value: 23 },
  ]);
  expect(pointsOf(messages, "/3303/0/5701")).toEqual([]);
  const ofOneMillisecond = pointsOf([values(1, 22), values(1, 21)], path);
  expect(ofOneMillisecond.map(({ value }) => value)).toEqual([21, 22]);
});

test("a file has a row for each value", () => {
  const data = {
    id: "1",
    type: "TELEMETRY_DATA",
    source: "UDP",
    time: "2026-11-24T12:00:00.000Z",
    received: "0",
    payload: { type: "STRING", encoding: "base64", value: btoa("on") },
  } as unknown as Message;
  expect(rowsOf([values(1, 21.5), data])).toEqual([
    ["received", "measured", "kind", "path", "value"],
    ["2026-11-24T12:01:00.000Z", "2026-11-24T12:01:00.000Z", "LwM2M send", path, "21.5"],
    ["2026-11-24T12:01:00.000Z", "2026-11-24T12:01:00.000Z", "LwM2M send", "/3303/0/5701", "Cel"],
    ["2026-11-24T12:00:00.000Z", "2026-11-24T12:00:00.000Z", "UDP data", "", "on"],
  ]);
});
