// The form that signs in, at whatever address a person came to.
import { useQuery } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";

import { Notice } from "../ui/states";
import { type Credentials, identityProviderQuery, useSessionState, useSignIn } from "./query";

type Kind = "client" | "operator";

export function SignIn() {
  const { refusal } = useSessionState();
  const [kind, setKind] = useState<Kind>("client");
  const signIn = useSignIn();
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    signIn.mutate(credentialsOf(kind, new FormData(event.currentTarget)));
  };
  const problem = signIn.error?.message ?? refusal;
  return (
    <main className="sign-in">
      <form className="card stack" onSubmit={submit} aria-labelledby="sign-in-title">
        <h1 id="sign-in-title">Sign in to signalbox</h1>
        {problem !== undefined && (
          <Notice tone="bad" alert>
            {sentence(problem)}
          </Notice>
        )}
        <SingleSignOn />
        <fieldset className="choices">
          <legend className="visually-hidden">Sign in as</legend>
          <Choice kind="client" chosen={kind} choose={setKind} label="API client" />
          <Choice kind="operator" chosen={kind} choose={setKind} label="Operator" />
        </fieldset>
        {kind === "client" ? (
          <>
            <Field name="clientId" label="Client id" autoComplete="username" />
            <Field
              name="clientSecret"
              label="Client secret"
              type="password"
              autoComplete="current-password"
            />
          </>
        ) : (
          <Field
            name="operatorToken"
            label="Operator token"
            type="password"
            autoComplete="current-password"
          />
        )}
        <button className="primary" type="submit" disabled={signIn.isPending}>
          {signIn.isPending ? "Signing in…" : "Sign in"}
        </button>
        <p className="muted small">
          {kind === "client"
            ? "The operator of the service creates API clients. You see what the scopes of yours permit."
            : "The file operator-token in the data directory of the service has the token."}
        </p>
      </form>
    </main>
  );
}

/** The way to the identity provider, and from there back to the view at this address. */
function SingleSignOn() {
  const { data: provider } = useQuery(identityProviderQuery);
  if (!provider) return null;
  const { pathname, search } = window.location;
  return (
    <>
      <a
        className="primary"
        href={`/console/oidc/sign-in?to=${encodeURIComponent(pathname + search)}`}
      >
        Sign in with {provider.name}
      </a>
      <p className="muted small">Or with credentials of this service:</p>
    </>
  );
}

function Choice(props: { kind: Kind; chosen: Kind; choose: (kind: Kind) => void; label: string }) {
  return (
    <label className="choice">
      <input
        type="radio"
        name="kind"
        checked={props.kind === props.chosen}
        onChange={() => props.choose(props.kind)}
      />
      {props.label}
    </label>
  );
}

function Field(props: { name: string; label: string; type?: string; autoComplete: string }) {
  return (
    <label className="field">
      <span>{props.label}</span>
      <input
        name={props.name}
        type={props.type ?? "text"}
        autoComplete={props.autoComplete}
        autoCapitalize="none"
        spellCheck={false}
        required
      />
    </label>
  );
}

function credentialsOf(kind: Kind, form: FormData): Credentials {
  const text = (name: string) => {
    const value = form.get(name);
    return typeof value === "string" ? value.trim() : "";
  };
  return kind === "client"
    ? { clientId: text("clientId"), clientSecret: text("clientSecret") }
    : { operatorToken: text("operatorToken") };
}

/** A message of the service as a sentence. */
function sentence(text: string): string {
  const full = text.endsWith(".") ? text : `${text}.`;
  return full.charAt(0).toUpperCase() + full.slice(1);
}
