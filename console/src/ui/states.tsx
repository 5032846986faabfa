// What a view shows when there is nothing to show, not yet, or not to this person.
import type { ReactNode } from "react";

import { CallFailure } from "../api/client";
import { type Scope, useScope, useSession } from "../session/query";

export type Tone = "good" | "bad" | "busy" | "calm" | "warn";

export function Notice(props: { tone: Tone; alert?: boolean; children: ReactNode }) {
  return (
    <div className={`notice ${props.tone}`} role={props.alert === true ? "alert" : undefined}>
      {props.children}
    </div>
  );
}

export function Loading(props: { what: string }) {
  return (
    <p className="muted state" role="status">
      Loading {props.what}…
    </p>
  );
}

export function Empty(props: { title: string; children?: ReactNode }) {
  return (
    <div className="state empty">
      <p className="strong">{props.title}</p>
      {props.children !== undefined && <div className="muted">{props.children}</div>}
    </div>
  );
}

export function Failed(props: { what: string; error: Error; retry?: () => void }) {
  const { error } = props;
  const traceId = error instanceof CallFailure ? error.traceId : undefined;
  const isMissing = error instanceof CallFailure && error.status === 404;
  return (
    <Notice tone="bad" alert>
      <p className="strong">
        {isMissing ? `There is no such ${props.what}.` : `Could not load the ${props.what}.`}
      </p>
      {!isMissing && <p>{error.message}</p>}
      {traceId !== undefined && !isMissing && (
        <p className="small">
          Trace id for the operator: <code>{traceId}</code>
        </p>
      )}
      {props.retry !== undefined && !isMissing && (
        <button type="button" onClick={props.retry}>
          Try again
        </button>
      )}
    </Notice>
  );
}

/** Shows a view to a session with the scope it needs. */
export function Scoped(props: { scope: Scope; children: ReactNode }) {
  const { person } = useSession();
  if (useScope(props.scope)) return props.children;
  return (
    <Notice tone="warn">
      <p className="strong">You may not see this.</p>
      <p>
        {person === undefined ? "Your API client lacks" : "The rule for your groups lacks"} the
        scope <code>{props.scope}</code>. The operator of the service can{" "}
        {person === undefined ? "create one that has it" : "add it"}.
      </p>
    </Notice>
  );
}

/** Shows a view to the operator. */
export function ForOperator(props: { children: ReactNode }) {
  if (useSession().role === "OPERATOR") return props.children;
  return (
    <Notice tone="warn">
      <p className="strong">You may not see this.</p>
      <p>Only the operator of the service does: sign out, and sign in as the operator.</p>
    </Notice>
  );
}

/** What a query has so far. */
export interface Result<T> {
  data: T | undefined;
  error: Error | null;
  refetch: () => unknown;
}

/** The result of a query: its data, or what there is instead. */
export function Loaded<T>(props: {
  what: string;
  query: Result<T>;
  children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = props.query;
  const failed = error !== null && (
    <Failed what={props.what} error={error} retry={() => void refetch()} />
  );
  if (data === undefined) return failed === false ? <Loading what={props.what} /> : failed;
  return (
    <>
      {failed}
      {props.children(data)}
    </>
  );
}
