// How does the console call the API? Through its own server side, which adds the token of the session.
import createClient from "openapi-fetch";

import type { components, paths } from "../../generated/api";
import { noteEnd, takeActivity, csrfToken } from "../session/current";

/** The bodies of the API. */
export type Schemas = components["schemas"];

/** Why a call failed. */
export class CallFailure extends Error {
  override readonly name = "CallFailure";

  constructor(
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number,
    /** What the service says, for people. */
    readonly faults: readonly Schemas["Fault"][],
    /** By which the operator finds the call in the log. */
    readonly traceId?: string,
  ) {
    super(faultsText(faults) || "the service did not answer");
  }
}

/** Faults, each with the property it is about. */
export function faultsText(faults: readonly Schemas["Fault"][]): string {
  return faults
    .map(({ field, message }) => (field === undefined ? message : `${field} ${message}`))
    .join("; ");
}

/** The API. */
export const api = createClient<paths>({ baseUrl: `${window.location.origin}/console/api` });

api.use({
  onRequest({ request }) {
    sign(request.headers, request.method);
    return request;
  },
});

/** Adds what the server side of the console expects of a call. */
export function sign(headers: Headers, method: string): void {
  const token = csrfToken();
  if (method !== "GET" && token !== undefined) headers.set("x-csrf-token", token);
  if (takeActivity()) headers.set("x-user-activity", "1");
}

/** What `openapi-fetch` makes of a response. */
interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of a response, or a failure. */
export async function bodyOf<T>(call: Promise<Answer<T>>): Promise<T> {
  const answer = await answered(call);
  // A response without a body has no data.
  if (answer.response.ok) return answer.data as T;
  throw failureOf(answer.response.status, answer.error);
}

/** The body of a response, or null where there is no such thing. */
export function bodyIfAny<T>(call: Promise<Answer<T>>): Promise<T | null> {
  return bodyOf(call).catch((error: unknown) => {
    if (error instanceof CallFailure && error.status === 404) return null;
    throw error;
  });
}

/** The answer to a call, or the failure that there is none. */
export function answered<T>(call: Promise<T>): Promise<T> {
  return call.catch(() => {
    throw new CallFailure(0, []);
  });
}

/** The failure that an error response describes. */
export function failureOf(status: number, body: unknown): CallFailure {
  const error = (typeof body === "object" && body !== null ? body : {}) as Partial<
    Schemas["Error"]
  >;
  const faults = error.errors ?? [];
  if (status === 401 && faults.some((fault) => fault.code !== "BAD_CREDENTIALS")) noteEnd();
  return new CallFailure(status, faults, error.traceId);
}
