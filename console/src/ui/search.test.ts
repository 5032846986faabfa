import { expect, test } from "vitest";

import { given, page, text, word } from "./search";

test("what is not valid in an address is left out", () => {
  const words = [
    ["FAILED", "failed"],
    ["SCHEDULED", "scheduled"],
  ] as const;
  const search = { page: "x", status: "failed", q: "", other: 8988 };
  expect(
    given({ page: page(search), status: word(search, "status", words), q: text(search, "q") }),
  ).toEqual({});
  expect(text(search, "other")).toBe("8988");
  expect(word({ status: "FAILED" }, "status", words)).toBe("FAILED");
  expect([1, 2, 2.5, -1].map((number) => page({ page: number }))).toEqual([
    undefined,
    2,
    undefined,
    undefined,
  ]);
});
