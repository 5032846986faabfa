import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { paced } from "./pace";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("what is asked for is done at once, and what is asked meanwhile once after the pause", async () => {
  const act = vi.fn(() => Promise.resolve());
  const { ask } = paced(act, 500);
  ask();
  expect(act).toHaveBeenCalledTimes(1);
  ask();
  ask();
  await vi.advanceTimersByTimeAsync(499);
  expect(act).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(act).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(act).toHaveBeenCalledTimes(2);
});

test("what is under way is waited for, and may fail", async () => {
  let fail: (error: Error) => void = () => undefined;
  const act = vi.fn(() => new Promise((_, reject) => (fail = reject)));
  const { ask } = paced(act, 500);
  ask();
  ask();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(act).toHaveBeenCalledTimes(1);
  fail(new Error("no answer"));
  await vi.advanceTimersByTimeAsync(500);
  expect(act).toHaveBeenCalledTimes(2);
});

test("nothing is done after the end", async () => {
  const act = vi.fn(() => Promise.resolve());
  const { ask, stop } = paced(act, 500);
  ask();
  ask();
  stop();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(act).toHaveBeenCalledTimes(1);
});
