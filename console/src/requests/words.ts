// The words of requests, as the API and as people write them.
import type { Schemas } from "../api/client";

export type Status = Schemas["ActionRequest"]["status"];

export const statuses = [
  ["SCHEDULED", "Scheduled"],
  ["IN_PROGRESS", "In progress"],
  ["SUCCEEDED", "Succeeded"],
  ["FAILED", "Failed"],
  ["CANCELLED", "Cancelled"],
] as const satisfies readonly (readonly [Status, string])[];

export const protocols = [
  ["LWM2M", "LwM2M"],
  ["COAP", "CoAP"],
  ["UDP", "UDP"],
] as const;

/** A protocol as people write it. */
export function protocolName(protocol: "UDP" | "COAP" | "LWM2M"): string {
  return protocols.find(([word]) => word === protocol)?.[1] ?? protocol;
}

export const lists = [
  ["active", "Active"],
  ["archived", "Archived"],
] as const;

export const orders = [
  ["created", "Oldest first"],
  ["-updated", "Changed last"],
  ["updated", "Changed first"],
] as const;

/** Whether a status never changes. */
export function isFinal(status: Status): boolean {
  return status !== "SCHEDULED" && status !== "IN_PROGRESS";
}
