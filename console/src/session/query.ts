// Who is signed in?
import {
  type QueryClient,
  queryOptions,
  useMutation,
  useQueryClient,
  useSuspenseQuery,
} from "@tanstack/react-query";

import { CallFailure, answered, failureOf, sign } from "../api/client";
import type { components } from "../../generated/api";
import { setToken } from "./current";

/** A session, as the service shows it to its browser. */
export interface Session {
  role: "API_CLIENT" | "OPERATOR" | "PERSON";
  clientId?: string;
  /** The name of a person who signed in with the identity provider. */
  person?: string;
  customerId?: string;
  scopes: string[];
  platform: string;
  csrfToken: string;
  idleS: number;
  expires: string;
}

/** What signs in. */
export type Credentials =
  { clientId: string; clientSecret: string } | { operatorToken: string } | { code: string };

/** The session, and why nobody can sign in if that is so. */
export interface SessionState {
  session: Session | null;
  refusal?: string;
}

const path = "/console/session";

/** The one-time code of the link that led here; it is taken out of the address at once. */
let code = /^#code=(.+)$/.exec(window.location.hash)?.[1];
if (code !== undefined) {
  window.history.replaceState(window.history.state, "", window.location.pathname);
}

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: load,
  staleTime: Infinity,
  retry: false,
});

/** The identity provider with which people sign in, if there is one. */
export const identityProviderQuery = queryOptions({
  queryKey: ["session", "identity provider"],
  queryFn: async () => ((await call("GET", "/console/oidc")) ?? null) as { name: string } | null,
  staleTime: Infinity,
  retry: false,
});

/** The session of this browser. */
export function useSessionState(): SessionState {
  return useSuspenseQuery(sessionQuery).data;
}

/** The session of a person that is signed in. */
export function useSession(): Session {
  const { session } = useSessionState();
  if (session === null) throw new Error("only views of a session ask for it");
  return session;
}

/** Whether the session has a scope of the API. */
export function useScope(scope: Scope): boolean {
  return hasScope(useSession(), scope);
}

/** A scope that a route of the API needs. */
export type Scope = Exclude<components["schemas"]["Client"]["scopes"][number], "all">;

/** Whether a session has a scope of the API. */
export function hasScope(session: Session, scope: Scope): boolean {
  return session.scopes.includes("all") || session.scopes.includes(scope);
}

/** Signs in. */
export function useSignIn() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: signIn,
    onSuccess: (session) => {
      forget(queries);
      queries.setQueryData(sessionQuery.queryKey, { session });
    },
  });
}

/** Signs out here, or wherever somebody signed in with the same credentials. */
export function useSignOut() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (where: "here" | "everywhere") =>
      call("DELETE", where === "here" ? path : "/console/sessions"),
    onSettled: () => {
      setToken(undefined);
      forget(queries);
      queries.setQueryData(sessionQuery.queryKey, { session: null });
    },
  });
}

/** Forgets what another person may have seen. */
function forget(queries: QueryClient): void {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
}

async function load(): Promise<SessionState> {
  const given = code;
  code = undefined;
  try {
    if (given !== undefined) return { session: await signIn({ code: given }) };
    const session = (await call("GET", path)) as Session | undefined;
    setToken(session?.csrfToken);
    return { session: session ?? null };
  } catch (error) {
    if (!(error instanceof CallFailure)) throw error;
    return { session: null, refusal: error.message };
  }
}

async function signIn(credentials: Credentials): Promise<Session> {
  const session = (await call("POST", path, credentials)) as Session;
  setToken(session.csrfToken);
  return session;
}

async function call(method: string, to: string, body?: Credentials): Promise<unknown> {
  const headers = new Headers();
  if (body !== undefined) headers.set("content-type", "application/json");
  sign(headers, method);
  const response = await answered(
    fetch(to, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  const text = await response.text();
  if (!response.ok) throw failureOf(response.status, parsed(text));
  return text === "" ? undefined : parsed(text);
}

function parsed(text: string): components["schemas"]["Error"] | undefined {
  try {
    return JSON.parse(text) as components["schemas"]["Error"];
  } catch {
    return undefined;
  }
}
