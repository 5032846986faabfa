import { expect, test } from "vitest";

import { lastDays } from "./days";

test("days on which nothing happened are shown, too", () => {
  const days = [
    { day: "2026-10-25T00:00:00.000+0000", amount: 2 },
    { day: "2026-10-27T00:00:00.000+0000", amount: 5 },
  ];
  expect(lastDays(days, new Date(2026, 9, 27, 0, 30))).toEqual([
    { day: "2026-10-21", amount: 0 },
    { day: "2026-10-22", amount: 0 },
    { day: "2026-10-23", amount: 0 },
    { day: "2026-10-24", amount: 0 },
    { day: "2026-10-25", amount: 2 },
    { day: "2026-10-26", amount: 0 },
    { day: "2026-10-27", amount: 5 },
  ]);
});
