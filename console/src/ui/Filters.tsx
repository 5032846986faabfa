// The form above a list, which narrows it.
import type { ComponentProps, ReactNode } from "react";

import { type Typed, typedInto } from "./typed";

/** Fields and selections. On submission, `search` reads what was typed into the named fields. */
export function Filters(props: { search: (typed: Typed) => void; children: ReactNode }) {
  return (
    <form
      className="filters"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        props.search(typedInto(event.currentTarget));
      }}
    >
      {props.children}
      <button type="submit">Search</button>
    </form>
  );
}

/** A field that shows what the list is narrowed to, and starts anew when that changes. */
export function SearchField({
  label,
  value,
  className = "field",
  ...input
}: {
  label: string;
  value: string | undefined;
} & Omit<ComponentProps<"input">, "value" | "defaultValue">) {
  return (
    <label className={className}>
      <span>{label}</span>
      <input type="search" key={value} defaultValue={value} {...input} />
    </label>
  );
}
