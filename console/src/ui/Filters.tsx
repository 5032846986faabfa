// The form above a list, which narrows it.
import type { ComponentProps, ReactNode } from "react";

/** Fields and selections. On submission, `search` reads what was typed into the named fields. */
export function Filters(props: {
  search: (typed: (name: string) => string | undefined) => void;
  children: ReactNode;
}) {
  return (
    <form
      className="filters"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        props.search((name) => {
          const value = form.get(name);
          return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
        });
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
} & Pick<ComponentProps<"input">, "className" | "name" | "pattern" | "placeholder" | "title">) {
  return (
    <label className={className}>
      <span>{label}</span>
      <input type="search" key={value} defaultValue={value} {...input} />
    </label>
  );
}
