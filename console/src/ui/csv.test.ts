import { expect, test } from "vitest";

import { csvOf } from "./csv";

test("fields with separators are quoted", () => {
  const rows = [
    ["time", "value"],
    ["1", 'a "b", c'],
    ["2", "two\nlines"],
  ];
  expect(csvOf(rows)).toBe('time,value\r\n1,"a ""b"", c"\r\n2,"two\nlines"\r\n');
});

test("a text of a device is no formula in a spreadsheet", () => {
  expect(csvOf([["=1+1", "@sum", "+a", "-5", "-.5", "-a"]])).toBe("'=1+1,'@sum,'+a,-5,-.5,'-a\r\n");
});
