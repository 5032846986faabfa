// Which device was typed?
import type { Schemas } from "../api/client";
import { given } from "../ui/search";
import { type Typed, tagsOf } from "../ui/typed";

/** A change of a device that was typed, against what it was; or the tag that is none. */
export function changeOf(
  typed: Typed,
  was: Schemas["Device"],
): { body: Schemas["AmendedDevice"] } | { fault: string } {
  const tags = tagsOf(typed("tags") ?? "");
  if ("fault" in tags) return tags;
  const removed = Object.keys(was.tags).filter((key) => !(key in tags.tags));
  const security = typed("security") === "DTLS" ? "DTLS" : "ANY";
  const offlineAfter = typed("offlineAfter");
  const body = {
    name: typed("name") ?? null,
    iccid: typed("iccid") ?? was.iccid,
    imsi: typed("imsi") ?? null,
    msisdn: typed("msisdn") ?? null,
    ip: typed("ip") ?? null,
    endpoint: typed("endpoint") ?? was.endpoint,
    security,
    offlineAfter: offlineAfter === undefined ? null : Number(offlineAfter),
    tags: { ...tags.tags, ...Object.fromEntries(removed.map((key) => [key, null])) },
  } satisfies Schemas["AmendedDevice"];
  const isChanged = ([name, value]: [string, unknown]) =>
    JSON.stringify(value) !== JSON.stringify(was[name as keyof typeof was] ?? null);
  return { body: Object.fromEntries(Object.entries(body).filter(isChanged)) };
}

/** A device that was typed, or the tag that is none. */
export function newDeviceOf(typed: Typed): { body: Schemas["NewDevice"] } | { fault: string } {
  const tags = tagsOf(typed("tags") ?? "");
  if ("fault" in tags) return tags;
  const names = ["deviceId", "name", "iccid", "imsi", "msisdn", "ip", "endpoint", "security"];
  const texts = Object.fromEntries(names.map((name) => [name, typed(name)]));
  const seconds = typed("offlineAfter");
  const offlineAfter = seconds === undefined ? undefined : Number(seconds);
  return {
    body: { ...given({ ...texts, offlineAfter }), tags: tags.tags } as Schemas["NewDevice"],
  };
}
