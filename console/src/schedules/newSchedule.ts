// Which schedule was typed, and when is one due, in words?
import type { Schemas } from "../api/client";
import type { Asked } from "../jobs/asked";
import type { NewRequest } from "../requests/newRequest";
import { given } from "../ui/search";
import { durationOf } from "../ui/time";
import { type Typed, utcInput } from "../ui/typed";

/** How the times of a schedule are given. */
export const rhythms = [
  ["daily", "Daily at a time"],
  ["every", "At intervals"],
] as const;

export type Rhythm = (typeof rhythms)[number][0];

/** Units of an interval, in seconds. */
export const units = [
  ["60", "minutes"],
  ["3600", "hours"],
  ["86400", "days"],
] as const;

/** The schedule that was typed; the service judges what is missing. */
export function scheduleOf(
  rhythm: Rhythm,
  typed: Typed,
  request: NewRequest,
  asked: Asked,
): Schemas["NewSchedule"] {
  const { protocol, body } = request;
  const due =
    rhythm === "daily"
      ? { daily: { at: typed("at") ?? "", zone: typed("zone") ?? "" } }
      : { every: Number(typed("every")) * Number(typed("unit")) };
  const schedule = {
    name: typed("name"),
    ...due,
    start: utcInput(typed("start")),
    end: utcInput(typed("end")),
    request: { protocol, ...body, ...asked },
  };
  return given(schedule) as Schemas["NewSchedule"];
}

/** When a schedule is due. */
export function dueText({ daily, every }: Schemas["Schedule"]): string {
  if (daily !== undefined) return `daily at ${daily.at} in ${daily.zone}`;
  return every === undefined ? "" : `every ${durationOf(every)}`;
}

/** Which devices the request of a schedule is for. */
export function askedBy(request: Schemas["ScheduledRequest"]): Asked {
  return "filter" in request ? { filter: request.filter } : { deviceIds: request.deviceIds };
}
