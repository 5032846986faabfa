import { expect, test } from "vitest";

import { bandOf, boundsOf, pathOf, shortNumber } from "./scale";

test("a line goes from the bottom left to the top right", () => {
  const points = [
    { time: 0, value: 10 },
    { time: 50, value: 15 },
    { time: 100, value: 20 },
  ];
  expect(pathOf(points, 200, 100)).toBe("M0.0 100.0L100.0 50.0L200.0 0.0");
});

test("values that are all alike are in the middle", () => {
  const alike = [
    { time: 0, value: 0 },
    { time: 10, value: 0 },
  ];
  expect(boundsOf(alike)).toEqual({ from: 0, to: 10, low: -1, high: 1 });
  expect(pathOf(alike, 200, 100)).toBe("M0.0 50.0L200.0 50.0");
  expect(pathOf([{ time: 5, value: 7 }], 200, 100)).toBe("M100.0 50.0");
});

test("the mean of many values is within a band of the lowest and the highest", () => {
  const points = [
    { time: 0, value: 15, many: { count: 2, low: 10, high: 20 } },
    { time: 10, value: 15 },
  ];
  expect(pathOf(points, 200, 100)).toBe("M0.0 50.0L200.0 50.0");
  expect(bandOf(points, 200, 100)).toBe("M0.0 0.0L200.0 50.0L200.0 50.0L0.0 100.0Z");
});

test("numbers are short", () => {
  expect(shortNumber(21.499999999)).toBe("21.5");
  expect(shortNumber(1234567)).toBe("1234600");
});
