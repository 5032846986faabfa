// How many entries were there on each of the last days? The service leaves out days without any.
import type { Schemas } from "../api/client";

/** The days that the service counts. */
const counted = 7;

/** The last days in the viewer's zone, the oldest first, with those on which nothing happened. */
export function lastDays(
  days: readonly Schemas["LogDay"][],
  now: Date,
): { day: string; amount: number }[] {
  return Array.from({ length: counted }, (_, index) => {
    const back = counted - 1 - index;
    // Noon is on the same day whatever the clocks do at night.
    const noon = new Date(now.getFullYear(), now.getMonth(), now.getDate() - back, 12);
    const day = [noon.getFullYear(), noon.getMonth() + 1, noon.getDate()]
      .map((part) => String(part).padStart(2, "0"))
      .join("-");
    const amount = days.find((one) => one.day.startsWith(day))?.amount ?? 0;
    return { day, amount };
  });
}
