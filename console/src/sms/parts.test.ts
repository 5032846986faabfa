import { expect, test } from "vitest";

import { sizeOf } from "./parts";

test("a text of the default alphabet is one message up to 160 characters", () => {
  const alphabet = "GSM 7 bit";
  expect(sizeOf("")).toEqual({ alphabet, units: 0, parts: 1, left: 160 });
  expect(sizeOf("a".repeat(160))).toEqual({ alphabet, units: 160, parts: 1, left: 0 });
  expect(sizeOf("a".repeat(161))).toEqual({ alphabet, units: 161, parts: 2, left: 145 });
  expect(sizeOf("a".repeat(306))).toEqual({ alphabet, units: 306, parts: 2, left: 0 });
  expect(sizeOf("a".repeat(307))).toEqual({ alphabet, units: 307, parts: 3, left: 152 });
});

test("a character of the extension table takes two, which no division separates", () => {
  expect(sizeOf("€".repeat(80))).toMatchObject({ units: 160, parts: 1, left: 0 });
  // 153 is odd: the last septet of each part stays empty.
  expect(sizeOf("€".repeat(153))).toMatchObject({ units: 306, parts: 3, left: 151 });
});

test("any other character makes all of the text UCS-2", () => {
  const alphabet = "UCS-2";
  expect(sizeOf("ł")).toEqual({ alphabet, units: 1, parts: 1, left: 69 });
  expect(sizeOf("ł".repeat(70))).toEqual({ alphabet, units: 70, parts: 1, left: 0 });
  expect(sizeOf("ł".repeat(71))).toEqual({ alphabet, units: 71, parts: 2, left: 63 });
  // A surrogate pair stays together: 66 units in each part.
  expect(sizeOf("😀".repeat(67))).toEqual({ alphabet, units: 134, parts: 3, left: 65 });
});
