import { expect, test } from "vitest";

import { campaignOf } from "./newCampaign";
import { sizeText } from "./words";

const typedAs = (texts: Record<string, string>) => (name: string) => texts[name];

test("a campaign has what was typed, and a stored image instead of a URI", () => {
  const typed = typedAs({
    imageId: "0198c0de-0000-7000-8000-000000000001",
    url: "https://example.com/meter.bin",
    method: "AUTO",
    concurrency: "50",
    canaryPercent: "5",
    notAfter: "2026-11-24T12:00",
  });
  expect(campaignOf({ filter: { tag: "site:berlin" } }, typed)).toEqual({
    filter: { tag: "site:berlin" },
    imageId: "0198c0de-0000-7000-8000-000000000001",
    method: "AUTO",
    concurrency: 50,
    canaryPercent: 5,
    notAfter: new Date(2026, 10, 24, 12).toISOString(),
  });
  const elsewhere = typedAs({ url: "https://example.com/meter.bin", concurrency: "1" });
  expect(campaignOf({ deviceIds: ["meter-1"] }, elsewhere)).toEqual({
    deviceIds: ["meter-1"],
    url: "https://example.com/meter.bin",
    concurrency: 1,
  });
});

test("bytes are shown in a unit that leaves few digits", () => {
  expect([0, 1_023, 1_024, 262_144, 5_767_168].map(sizeText)).toEqual([
    "0 bytes",
    "1023 bytes",
    "1 KiB",
    "256 KiB",
    "5.5 MiB",
  ]);
});
