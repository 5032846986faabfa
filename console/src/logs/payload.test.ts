import { expect, test } from "vitest";

import { decodedText, hexRows } from "./payload";

test("bytes are shown in rows of sixteen with their letters", () => {
  const bytes = Uint8Array.from({ length: 17 }, (_, index) => 0x3f + index);
  expect(hexRows(bytes).split("\n")).toEqual([
    "0000  3f 40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e  ?@ABCDEFGHIJKLMN",
    `0010  4f${" ".repeat(45)}  O`,
  ]);
  expect(hexRows(new Uint8Array())).toBe("");
});

test("bytes are text only if they are printable UTF-8", () => {
  expect(decodedText(new TextEncoder().encode("21,5 °C\n"))).toBe("21,5 °C\n");
  expect(decodedText(Uint8Array.of(0xff))).toBeUndefined();
  expect(decodedText(Uint8Array.of(0x00, 0x41))).toBeUndefined();
});
