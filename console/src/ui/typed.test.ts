import { expect, test } from "vitest";

import { localInput, tagText, tagsOf, utcInput } from "./typed";

test("tags are pairs with a colon between blanks or commas", () => {
  const typed = tagsOf(" site:berlin, floor:2 ");
  expect(typed).toEqual({ tags: { site: "berlin", floor: "2" } });
  expect(tagsOf("")).toEqual({ tags: {} });
  expect(tagText({ site: "berlin", floor: "2" })).toBe("site:berlin, floor:2");
  for (const fault of ["site", "site:", ":berlin", "site:a:b", "sité:berlin"]) {
    expect(tagsOf(`floor:2 ${fault}`)).toEqual({ fault });
  }
});

test("a time that is typed comes back as it was", () => {
  const utc = utcInput("2026-11-24T12:30");
  expect(localInput(utc)).toBe("2026-11-24T12:30");
  expect(utcInput("soon")).toBeUndefined();
  expect(localInput("soon")).toBeUndefined();
  expect(localInput(undefined)).toBeUndefined();
});
