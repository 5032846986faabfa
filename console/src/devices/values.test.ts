import { expect, test } from "vitest";

import { dataOf } from "./values";

test("an entered value becomes the text that the API takes", async () => {
  for (const [type, entered, text] of [
    ["integer", " -5 ", "-5"],
    ["unsigned_integer", "7", "7"],
    ["float", "21.5", "21.5"],
    ["string", " as it is ", " as it is "],
    ["objlnk", "3303:0", "3303:0"],
    ["boolean", "true", "true"],
  ] as const) {
    expect(await dataOf(type, entered), type).toEqual({ text });
  }
  const time = await dataOf("time", "2026-11-24T12:00:00");
  expect(time).toEqual({ text: new Date(2026, 10, 24, 12).toISOString() });
  const file = new File([new Uint8Array([0, 255])], "any");
  expect(await dataOf("opaque", file)).toEqual({ text: "AP8=" });
});

test("what is no value of its type is told before it is sent", async () => {
  for (const [type, entered] of [
    ["integer", "1.5"],
    ["unsigned_integer", "-1"],
    ["float", "warm"],
    ["float", ""],
    ["time", ""],
    ["objlnk", "3303"],
  ] as const) {
    expect(await dataOf(type, entered), `${type} ${entered}`).toHaveProperty("fault");
  }
  expect(await dataOf("opaque", new File([], ""))).toHaveProperty("fault");
});
