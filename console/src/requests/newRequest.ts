// What does a new request ask its device for: as it was typed, or as an earlier one did?
import type { Schemas } from "../api/client";
import { given } from "../ui/search";
import type { Typed } from "../ui/typed";

export type Protocol = "LWM2M" | "COAP" | "UDP";

/** A request that is not created yet. */
export type NewRequest =
  | { protocol: "LWM2M"; body: Schemas["Lwm2mAction"] }
  | { protocol: "COAP"; body: Schemas["CoapAction"] }
  | { protocol: "UDP"; body: Schemas["UdpAction"] };

export const actions = [
  ["read", "Read"],
  ["write", "Write"],
  ["execute", "Execute"],
  ["observe-start", "Start to observe"],
  ["observe-end", "Stop observing"],
  ["discover", "Discover"],
] as const;

export const methods = [
  ["GET", "GET"],
  ["POST", "POST"],
  ["PUT", "PUT"],
  ["DELETE", "DELETE"],
  ["PATCH", "PATCH"],
] as const;

export const modes = [
  ["SEND_WHEN_ACTIVE", "When the device is active"],
  ["SEND_NOW", "At once"],
] as const;

export const payloadTypes = [
  ["STRING", "Text"],
  ["BASE64", "Base64"],
] as const;

/** The request that was typed; the service judges what is missing. */
export function requestOf(protocol: Protocol, typed: Typed): NewRequest {
  const shared = {
    requestMode: typed("requestMode"),
    sendAttempts: protocol === "UDP" ? undefined : numberOf(typed("sendAttempts")),
    expiresIn: hoursOf(typed("expiresIn")),
    wakeUp: typed("wakeUp"),
  };
  const payload = typed("payload");
  const payloadType = payload === undefined ? undefined : typed("payloadType");
  const port = numberOf(typed("port"));
  switch (protocol) {
    case "LWM2M": {
      const action = typed("action");
      const takesData = action === "write" || action === "execute";
      // An empty text may be written.
      const data = takesData ? (typed("data") ?? (action === "write" ? "" : undefined)) : undefined;
      return of(protocol, { action, resourceAddress: typed("resourceAddress"), data, ...shared });
    }
    case "COAP": {
      const [path, requestType] = [typed("path"), typed("requestType")];
      return of(protocol, { port, path, requestType, payload, payloadType, ...shared });
    }
    case "UDP":
      return of(protocol, { port, payload, payloadType, ...shared });
  }
}

/** The properties that the service adds to what it was asked for. */
const added = [
  "customerId",
  "deviceId",
  "deviceIpAddress",
  "iccid",
  "imsi1",
  "requestId",
  "traceId",
  // The time has come and gone.
  "notBefore",
];

/** The request that asks for the same again; none if the service left out what is long. */
export function repetitionOf(request: Schemas["ActionRequest"]): NewRequest | undefined {
  const { protocol, requestData, omitted = [] } = request;
  if (omitted.some((name) => name.startsWith("requestData"))) return undefined;
  const asked = Object.entries(requestData).filter(
    ([name]) => !added.includes(name) && !(protocol === "UDP" && name === "sendAttempts"),
  );
  return of(protocol, Object.fromEntries(asked));
}

/** The path of the route that creates requests to a device. */
function pathOf(device: string, protocol: Protocol): string {
  return `/management-api/v1/integrate/devices/${encodeURIComponent(device)}/actions/${protocol}`;
}

/** The command line that creates a request. */
export function curlOf(address: string, device: string, request: NewRequest): string {
  const body = JSON.stringify(request.body).replaceAll("'", "'\\''");
  return [
    `curl -X POST ${address}${pathOf(device, request.protocol)}`,
    `-H "Authorization: Bearer $TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `-d '${body}'`,
  ].join(" \\\n  ");
}

/** A request without the properties that have no value. */
function of(protocol: Protocol, body: object): NewRequest {
  return { protocol, body: given(body) } as NewRequest;
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

function hoursOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Math.round(Number(text) * 3_600);
}
