// Which events does a destination want?
import { lifecycleEventTypeValues } from "../../generated/api";
import type { Schemas } from "../api/client";
import type { Typed } from "../ui/typed";
import { wordsOf } from "../ui/words";

/** The types of events that can be chosen as a whole. */
export const eventTypes = [
  ["TELEMETRY_DATA", "Data"],
  ["ERROR", "Errors"],
  ["ACTION_RESULT", "Results of requests"],
] as const satisfies readonly (readonly [Schemas["WantedEventType"]["type"], string])[];

/** A kind of lifecycle events. */
export type LifecycleKind = Schemas["LifecycleEvent"]["type"];

/** The kinds of lifecycle events. */
export const lifecycleKinds: readonly LifecycleKind[] = lifecycleEventTypeValues;

/** The kinds that only those destinations receive which name them: there may be many. */
const named: readonly LifecycleKind[] = ["AWAKE", "ASLEEP"];

/** The kinds that a destination receives which names none. */
const usual = lifecycleKinds.filter((kind) => !named.includes(kind));

/** The name of the field of a kind. */
export const kindField = (kind: LifecycleKind) => `LIFECYCLE-${kind}`;

/** The events that were chosen. */
export function wantedOf(typed: Typed): Schemas["WantedEventType"][] {
  const kinds = lifecycleKinds.filter((kind) => typed(kindField(kind)) !== undefined);
  const isUsual = kinds.length === usual.length && usual.every((kind) => kinds.includes(kind));
  const lifecycle: Schemas["WantedEventType"][] = isUsual
    ? [{ type: "LIFECYCLE" }]
    : [{ type: "LIFECYCLE", kinds }];
  return [
    ...eventTypes.filter(([type]) => typed(type) !== undefined).map(([type]) => ({ type })),
    ...(kinds.length === 0 ? [] : lifecycle),
  ];
}

/** Whether a type is wanted; by default all are but results, which many systems have no use for. */
export function isWanted(
  type: Schemas["EventType"]["type"],
  wanted: readonly Schemas["EventType"][] | undefined,
): boolean {
  if (wanted === undefined) return type !== "ACTION_RESULT";
  return wanted.some((it) => it.type === type);
}

/** Whether a kind of lifecycle events is wanted. */
export function isKindWanted(
  kind: LifecycleKind,
  wanted: readonly Schemas["EventType"][] | undefined,
): boolean {
  const lifecycle = (wanted ?? [{ type: "LIFECYCLE" }]).find(({ type }) => type === "LIFECYCLE");
  return lifecycle !== undefined && (lifecycle.kinds ?? usual).includes(kind);
}

/** The events that a destination wants, in words. */
export function wantedText(wanted: readonly Schemas["EventType"][]): string {
  const texts = wanted.map(({ type, kinds }) =>
    kinds === undefined ? wordsOf(type) : `${wordsOf(type)} (${kinds.map(wordsOf).join(", ")})`,
  );
  return texts.join(", ") || "all";
}
