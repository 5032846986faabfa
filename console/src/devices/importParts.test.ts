import { expect, test } from "vitest";

import { type Part, partsOf } from "./importParts";

async function partsOfText(text: string, isCsv: boolean): Promise<[string, number][]> {
  const file = new Blob([text]);
  const found: Part[] = [];
  for await (const part of partsOf(file, isCsv)) found.push(part);
  const texts = found.map(({ from, to }) => file.slice(from, to).text());
  return (await Promise.all(texts)).map((part, index) => [part, found[index]?.linesBefore ?? 0]);
}

test("a short file is one part, and the header of a CSV file belongs to none", async () => {
  expect(await partsOfText('{"deviceId":"a"}\n', false)).toEqual([['{"deviceId":"a"}\n', 0]]);
  expect(await partsOfText("deviceId\na\nb", true)).toEqual([["a\nb", 1]]);
});

test("a long file is cut between lines, and each part knows the lines before it", async () => {
  const lines = Array.from({ length: 4_500 }, (_, index) => `meter-${index},"left"\n`);
  const parts = await partsOfText(`deviceId,name\n${lines.join("")}`, true);
  expect(parts.map(([, before]) => before)).toEqual([1, 2_001, 4_001]);
  expect(parts.map(([text]) => text).join("")).toBe(lines.join(""));
});

test("a line that goes on within quotes is not cut", async () => {
  const lines = Array.from({ length: 2_000 }, (_, index) => `meter-${index},"two\nlines"\n`);
  const parts = await partsOfText(`deviceId,name\n${lines.join("")}`, true);
  expect(parts.length).toBe(2);
  expect(parts.every(([text]) => text.endsWith('lines"\n'))).toBe(true);
  expect(parts[1]?.[1]).toBe(2_001);
});

test("every part has the header, which may go on within quotes", async () => {
  const header = '"device\nId",name\n';
  const lines = Array.from({ length: 2_001 }, (_, index) => `meter-${index},left\n`);
  const file = new Blob([header, ...lines]);
  const found: Part[] = [];
  for await (const part of partsOf(file, true)) found.push(part);
  expect(found.map((part) => part.header)).toEqual([
    { end: header.length, lines: 2 },
    { end: header.length, lines: 2 },
  ]);
  expect(found.map(({ from, linesBefore }) => [from, linesBefore])).toEqual([
    [header.length, 2],
    [header.length + lines.slice(0, 2_000).join("").length, 2_002],
  ]);
});

test("a header alone is no part, with or without the end of its line", async () => {
  expect(await partsOfText("deviceId\n", true)).toEqual([]);
  expect(await partsOfText("deviceId", true)).toEqual([]);
  expect(await partsOfText("", true)).toEqual([]);
});
