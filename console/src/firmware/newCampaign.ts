// Which campaign was typed?
import type { Schemas } from "../api/client";
import type { Asked } from "../jobs/asked";
import { given } from "../ui/search";
import { type Typed, utcInput } from "../ui/typed";

/** The campaign that was typed; the service judges what is missing. */
export function campaignOf(asked: Asked, typed: Typed): Schemas["NewFirmwareCampaign"] {
  const number = (name: string) => {
    const text = typed(name);
    return text === undefined ? undefined : Number(text);
  };
  const image = typed("imageId");
  const body = {
    ...asked,
    imageId: image,
    url: image === undefined ? typed("url") : undefined,
    method: typed("method"),
    concurrency: number("concurrency"),
    ratePerMinute: number("ratePerMinute"),
    retries: number("retries"),
    canaryPercent: number("canaryPercent"),
    haltAtFailedPercent: number("haltAtFailedPercent"),
    notBefore: utcInput(typed("notBefore")),
    notAfter: utcInput(typed("notAfter")),
  };
  return given(body) as Schemas["NewFirmwareCampaign"];
}
