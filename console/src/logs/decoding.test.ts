import { expect, test } from "vitest";

import { decodedAs } from "./decoding";

const bytesOfHex = (hex: string) =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

const readingsOf = (hex: string) =>
  decodedAs(bytesOfHex(hex)).map(({ format, text }) => [format, text.replace(/\s+/g, " ")]);

test("JSON is shown with its structure, and a bare number is none", () => {
  const bytes = new TextEncoder().encode('{"n":[1,true]}');
  expect(decodedAs(bytes)[0]).toEqual({
    format: "JSON",
    text: '{\n  "n": [\n    1,\n    true\n  ]\n}',
  });
  expect(decodedAs(new TextEncoder().encode("21"))).toEqual([]);
  expect(decodedAs(new Uint8Array())).toEqual([]);
});

test("SenML in CBOR is read", () => {
  // [{-2: "/3303/0/", 0: "5700", 2: 22.5}, {2: h'01ff', 6: 24(-3)}]
  const hex = "82a321682f333330332f302f00643537303002f94da0a2024201ff06d81822";
  expect(readingsOf(hex)).toEqual([
    ["CBOR", '[ { "0": "5700", "2": 22.5, "-2": "/3303/0/" }, { "2": "01ff", "6": -3 } ]'],
  ]);
});

test("TLV is read with what is within", () => {
  // An instance with a resource, and another one that has two instances.
  expect(readingsOf("08000bc100618606410001410105")).toEqual([
    [
      "TLV",
      "object instance 0 resource 0: 61 resources 6 resource instance 0: 01 resource instance 1: 05",
    ],
  ]);
});

test("bytes that end too early, go on, or claim too much are not read", () => {
  for (const hex of ["82", "8100", "9affffffff", "bf61", "c10061ff", "81".repeat(40), "ff"]) {
    const formats = readingsOf(hex).map(([format]) => format);
    expect(formats.includes("CBOR"), hex).toBe(hex === "8100");
    expect(formats.includes("TLV"), hex).toBe(false);
  }
});
