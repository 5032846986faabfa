// The words of firmware campaigns, as the API and as people write them.
import { firmwareCampaignMethodValues } from "../../generated/api";
import type { Schemas } from "../api/client";
import type { Tone } from "../ui/states";

export type Campaign = Schemas["FirmwareCampaign"];
export type CampaignDevice = Schemas["FirmwareCampaignDevice"];

export const states: Record<Campaign["state"], [Tone, string]> = {
  RUNNING: ["busy", "Running"],
  PAUSED: ["calm", "Paused"],
  HALTED: ["bad", "Halted"],
  DONE: ["good", "Done"],
  CANCELLED: ["calm", "Cancelled"],
};

export const deviceStates: Record<CampaignDevice["state"], [Tone, string]> = {
  PENDING: ["calm", "Pending"],
  TRANSFERRING: ["busy", "Transferring"],
  DOWNLOADED: ["busy", "Downloaded"],
  UPDATING: ["busy", "Updating"],
  SUCCEEDED: ["good", "Succeeded"],
  FAILED: ["bad", "Failed"],
  SKIPPED: ["warn", "Skipped"],
};

const methodNames: Record<string, string> = {
  AUTO: "As the device supports it",
  PULL: "The device downloads it",
  PUSH: "The service writes it to the device",
};

/** How a device gets the image, in words. */
export const methodName = (method: string) => methodNames[method] ?? method;

/** The methods that the API has. */
export const methods = firmwareCampaignMethodValues.map(
  (method) => [method, methodName(method)] as const,
);

/** Whether a campaign never changes any more. */
export function isOver(state: Campaign["state"]): boolean {
  return state === "DONE" || state === "CANCELLED";
}

/** A number of bytes, in the unit that leaves few digits. */
export function sizeText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let [size, unit] = [bytes, 0];
  while (size >= 1_024 && unit < units.length - 1) [size, unit] = [size / 1_024, unit + 1];
  return `${unit === 0 ? size : Number(size.toPrecision(3))} ${units[unit] ?? ""}`;
}
