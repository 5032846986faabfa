// The parts of forms that change something.
import { type ComponentProps, type ReactNode, useId, useState } from "react";

import { Notice } from "./states";
import { type Typed, typedInto } from "./typed";

/** A form with its fields, its button, and what the service says against it. */
export function Form(props: {
  label: string;
  submit: string;
  isPending: boolean;
  error?: Error | null;
  /** What was done, once it is. */
  done?: string | false;
  act: (typed: Typed, form: HTMLFormElement) => void;
  children: ReactNode;
}) {
  return (
    <form
      className="stack"
      aria-label={props.label}
      onSubmit={(event) => {
        event.preventDefault();
        props.act(typedInto(event.currentTarget), event.currentTarget);
      }}
    >
      {props.children}
      <Refused error={props.error ?? null} />
      <div className="row">
        <button type="submit" className="primary" disabled={props.isPending}>
          {props.isPending ? "Waiting…" : props.submit}
        </button>
        <span role="status" className="muted">
          {props.done}
        </span>
      </div>
    </form>
  );
}

/** What the service says against a change. */
export function Refused(props: { error: Error | null }) {
  if (props.error === null) return null;
  return (
    <Notice tone="bad" alert>
      {props.error.message}
    </Notice>
  );
}

/** What names and explains a field. */
interface Explained {
  label: string;
  hint?: ReactNode;
}

/** A field with its label above and its hint below it: the hint is no part of its name. */
function Labelled(
  props: Explained & {
    children: (named: { id: string; "aria-describedby": string | undefined }) => ReactNode;
  },
) {
  const id = useId();
  const hint = props.hint === undefined ? undefined : `${id}-hint`;
  return (
    <div className="field">
      <label htmlFor={id}>{props.label}</label>
      {props.children({ id, "aria-describedby": hint })}
      {hint !== undefined && (
        <span id={hint} className="muted small">
          {props.hint}
        </span>
      )}
    </div>
  );
}

/** A field for a line, a file or a number. */
export function Field({ label, hint, ...input }: Explained & ComponentProps<"input">) {
  return (
    <Labelled label={label} hint={hint}>
      {(named) => (
        <input autoComplete="off" autoCapitalize="none" spellCheck={false} {...input} {...named} />
      )}
    </Labelled>
  );
}

/** A field for several lines. */
export function TextArea({ label, hint, ...area }: Explained & ComponentProps<"textarea">) {
  return (
    <Labelled label={label} hint={hint}>
      {(named) => <textarea rows={4} {...area} {...named} />}
    </Labelled>
  );
}

/** A choice that is part of a form. */
export function Choice({
  label,
  options,
  ...select
}: {
  label: string;
  options: readonly (readonly [string, string])[];
} & ComponentProps<"select">) {
  return (
    <label className="field">
      <span>{label}</span>
      <select {...select}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A box to tick. */
export function Check({ label, ...input }: { label: ReactNode } & ComponentProps<"input">) {
  return (
    <label className="choice">
      <input type="checkbox" {...input} />
      <span>{label}</span>
    </label>
  );
}

/** A text that can be copied. */
export function Copyable(props: { label: string; text: string }) {
  const [said, setSaid] = useState("");
  const copy = () =>
    navigator.clipboard.writeText(props.text).then(
      () => setSaid("Copied."),
      () => setSaid("The browser does not permit it: select the text."),
    );
  return (
    <div className="row">
      <pre tabIndex={0} aria-label={props.label}>
        {props.text}
      </pre>
      <button type="button" onClick={() => void copy()}>
        Copy
      </button>
      <span role="status" className="muted small">
        {said}
      </span>
    </div>
  );
}

/** Secrets that the service shows once. */
export function ShownOnce(props: { of: [string, string][] }) {
  return (
    <Notice tone="warn">
      <p className="strong">Keep this now: it is not shown again.</p>
      {props.of.map(([label, text]) => (
        <div key={label}>
          <div className="small">{label}</div>
          <Copyable label={label} text={text} />
        </div>
      ))}
    </Notice>
  );
}
