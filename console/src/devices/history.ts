// What is in the messages of a device: values over time, rows of a file, kinds in words.
import type { Schemas } from "../api/client";
import { bytesOf, decodedText } from "../logs/payload";
import { protocolName } from "../requests/words";
import type { Point } from "../ui/scale";
import { timeOf } from "../ui/time";
import { valueText } from "./objects";

export type Message = Schemas["Message"];

export const messageTypes = [
  ["TELEMETRY_DATA", "Data"],
  ["LIFECYCLE", "Lifecycle"],
  ["ACTION_RESULT", "Results of requests"],
  ["ERROR", "Errors"],
  ["SMS_RECEIVED", "SMS from the device"],
  ["SMS_REPORT", "SMS to the device"],
] as const satisfies readonly (readonly [Message["type"], string])[];

/** Which messages a view shows. */
export interface HistorySearch {
  type?: Message["type"];
  path?: string;
  from?: string;
  to?: string;
}

/** When a value was measured, or at least received. */
export function measuredAt(message: Message): string {
  return ("measured" in message ? message.measured : undefined) ?? message.time;
}

/** The numbers of a path in the order of time, from messages that are newest first. */
export function pointsOf(messages: readonly Message[], path: string): Point[] {
  // Turned around, so that numbers of one millisecond keep their order too.
  const points = messages.toReversed().flatMap((message) => {
    if (message.type !== "TELEMETRY_DATA" || message.source !== "LWM2M") return [];
    const value = message.payload.value[path];
    return typeof value === "number"
      ? [{ time: timeOf(measuredAt(message)).getTime(), value }]
      : [];
  });
  return points.sort((one, other) => one.time - other.time);
}

/** The points of buckets: each the mean of its numbers. */
export function pointsOfBuckets(buckets: readonly Schemas["SeriesBucket"][]): Point[] {
  return buckets.map(({ time, count, min, max, mean }) => ({
    time: timeOf(time).getTime(),
    value: mean,
    many: { count, low: min, high: max },
  }));
}

/** The rows of a file: one for each value, and one for each message without values. */
export function rowsOf(messages: readonly Message[]): string[][] {
  const head = ["received", "measured", "kind", "path", "value"];
  const rows = messages.flatMap((message) => {
    const received = timeOf(message.time).toISOString();
    const measured = timeOf(measuredAt(message)).toISOString();
    const kind = kindOf(message);
    if (message.type === "TELEMETRY_DATA" && message.source === "LWM2M") {
      return Object.entries(message.payload.value).map(([path, value]) => [
        received,
        measured,
        kind,
        path,
        valueText(value),
      ]);
    }
    const [path, value] = contentOf(message);
    return [[received, measured, kind, path, value]];
  });
  return [head, ...rows];
}

/** The topic and the text of a message that has no values by path. */
function contentOf(message: Exclude<Message, Schemas["ValuesMessage"]>): [string, string] {
  switch (message.type) {
    case "TELEMETRY_DATA":
      return [message.payload.topic ?? "", dataText(message.payload)];
    case "LIFECYCLE":
      return ["", message.lifecycle.message];
    case "ERROR":
      return ["", message.error.description];
    case "ACTION_RESULT":
      return ["", `${message.action.status} ${message.action.requestId}`];
    case "SMS_RECEIVED":
      return ["", message.sms.payload];
    case "SMS_REPORT":
      return ["", message.sms.status.status];
  }
}

/** Data as a text if it is one, otherwise in base64. */
export function dataText(payload: Schemas["DataPayload"]): string {
  return decodedText(bytesOf(payload.value)) ?? payload.value;
}

const causes: Record<string, string> = {
  ACTION: "answer to a request",
  COMPOSITE_OBSERVATION: "notification",
  OBSERVATION: "notification",
  PASSIVE_REPORT: "passive reporting",
  SEND: "send",
};

/** What kind of message it is, in words. */
export function kindOf(message: Message): string {
  switch (message.type) {
    case "TELEMETRY_DATA":
      if (message.source !== "LWM2M") return `${protocolName(message.source)} data`;
      return `LwM2M ${causes[message.cause.type] ?? message.cause.type}`;
    case "LIFECYCLE":
      return "lifecycle";
    case "ERROR":
      return "error";
    case "ACTION_RESULT":
      return "result of a request";
    case "SMS_RECEIVED":
      return "SMS from the device";
    case "SMS_REPORT":
      return "SMS to the device";
  }
}
