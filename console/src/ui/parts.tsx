// The parts that every view is made of.
import * as AlertDialog from "@radix-ui/react-alert-dialog";
import { type ReactNode, useEffect, useRef } from "react";

import type { Tone } from "./states";

/** The heading of a view. It takes the focus when the view opens, so that screen readers say it. */
export function Page(props: {
  title: string;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${props.title} · signalbox`;
  }, [props.title]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <>
      <header className="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {props.title}
          </h1>
          {props.lead !== undefined && <div className="muted">{props.lead}</div>}
        </div>
        {props.actions !== undefined && <div className="row">{props.actions}</div>}
      </header>
      {props.children}
    </>
  );
}

export function Card(props: { title: string; children: ReactNode; actions?: ReactNode }) {
  return (
    <section className="card">
      <header className="card-head">
        <h2>{props.title}</h2>
        {props.actions}
      </header>
      {props.children}
    </section>
  );
}

export function Badge(props: { tone: Tone; children: ReactNode }) {
  return <span className={`badge ${props.tone}`}>{props.children}</span>;
}

/** Names with their values; those without one are left out. */
export function Facts(props: { of: [string, ReactNode][] }) {
  const known = props.of.filter(([, value]) => value !== undefined && value !== "");
  return (
    <dl className="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A column of a table. */
export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
}

/** A table; on a phone each row is a card. The roles stay when the style takes the table apart. */
export function DataTable<T>(props: {
  caption: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}) {
  return (
    <table className="table" role="table">
      <caption className="visually-hidden">{props.caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {props.columns.map((column) => (
            <th key={column.head} scope="col" role="columnheader">
              {column.head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {props.rows.map((row) => (
          <tr key={props.keyOf(row)} role="row">
            {props.columns.map((column) => (
              <td key={column.head} role="cell" data-head={column.head}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A choice among words, of which none is one. */
export function Select<T extends string>(props: {
  label: string;
  value: T | undefined;
  any: string;
  options: readonly (readonly [T, string])[];
  choose: (value: T | undefined) => void;
}) {
  return (
    <label className="field">
      <span>{props.label}</span>
      <select
        value={props.value ?? ""}
        onChange={(event) => props.choose((event.target.value || undefined) as T | undefined)}
      >
        <option value="">{props.any}</option>
        {props.options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A button whose act is confirmed, with what it will do; unless it says otherwise, it destroys something. */
export function ConfirmButton(props: {
  look?: "danger" | "primary";
  label: string;
  title: string;
  children: ReactNode;
  confirm: string;
  act: () => void;
  disabled?: boolean;
}) {
  const look = props.look ?? "danger";
  return (
    <AlertDialog.Root>
      <AlertDialog.Trigger asChild>
        <button type="button" className={look} disabled={props.disabled}>
          {props.label}
        </button>
      </AlertDialog.Trigger>
      <AlertDialog.Portal>
        <div className="backdrop" />
        <AlertDialog.Content className="dialog">
          <AlertDialog.Title>{props.title}</AlertDialog.Title>
          <AlertDialog.Description asChild>
            <div>{props.children}</div>
          </AlertDialog.Description>
          <div className="row end">
            <AlertDialog.Cancel asChild>
              <button type="button">Go back</button>
            </AlertDialog.Cancel>
            <AlertDialog.Action asChild>
              <button type="button" className={look} onClick={props.act}>
                {props.confirm}
              </button>
            </AlertDialog.Action>
          </div>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
