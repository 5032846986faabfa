import { expect, test } from "vitest";

import {
  isKindWanted,
  isWanted,
  kindField,
  lifecycleKinds,
  wantedOf,
  wantedText,
} from "./wantedEvents";

const ticked =
  (...names: string[]) =>
  (name: string) =>
    names.includes(name) ? "on" : undefined;

test("the usual kinds of lifecycle events need no names", () => {
  const usual = lifecycleKinds.filter((kind) => isKindWanted(kind, undefined));
  expect(usual).toContain("REGISTERED");
  expect(usual).not.toContain("AWAKE");
  expect(wantedOf(ticked("TELEMETRY_DATA", ...usual.map(kindField)))).toEqual([
    { type: "TELEMETRY_DATA" },
    { type: "LIFECYCLE" },
  ]);
  expect(wantedOf(ticked(...lifecycleKinds.map(kindField)))).toEqual([
    { type: "LIFECYCLE", kinds: lifecycleKinds },
  ]);
  expect(wantedOf(ticked("ERROR", kindField("AWAKE")))).toEqual([
    { type: "ERROR" },
    { type: "LIFECYCLE", kinds: ["AWAKE"] },
  ]);
  expect(wantedOf(ticked("ERROR"))).toEqual([{ type: "ERROR" }]);
});

test("what a destination wants is what its form begins with", () => {
  const wanted = [
    { type: "ACTION_RESULT" } as const,
    { type: "LIFECYCLE", kinds: ["AWAKE"] as const },
  ] as const;
  const given = wanted.map((it) => ("kinds" in it ? { ...it, kinds: [...it.kinds] } : it));
  expect(isWanted("ACTION_RESULT", given)).toBe(true);
  expect(isWanted("TELEMETRY_DATA", given)).toBe(false);
  expect(isKindWanted("AWAKE", given)).toBe(true);
  expect(isKindWanted("REGISTERED", given)).toBe(false);
  expect(isKindWanted("REGISTERED", [{ type: "ERROR" }])).toBe(false);
  expect(wantedText(given)).toBe("action result, lifecycle (awake)");
  expect(wantedText([])).toBe("all");
});
