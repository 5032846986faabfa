// What was typed into a form?
import { timeOf } from "./time";

/** The text of a named field without the blanks around it, if there is one. */
export type Typed = (name: string) => string | undefined;

/** Reads a form. */
export function typedInto(form: HTMLFormElement): Typed {
  const data = new FormData(form);
  return (name) => {
    const value = data.get(name);
    return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
  };
}

/** The tags of a text such as `site:berlin, floor:2`, or the part of it that is none. */
export function tagsOf(text: string): { tags: Record<string, string> } | { fault: string } {
  const tags: Record<string, string> = {};
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const [, key, value] = /^([A-Za-z0-9._-]{1,64}):([A-Za-z0-9._-]{1,64})$/.exec(part) ?? [];
    if (key === undefined || value === undefined) return { fault: part };
    tags[key] = value;
  }
  return { tags };
}

/** Each tag as it is typed. */
export function tagTexts(tags: Record<string, string>): string[] {
  return Object.entries(tags).map(([key, value]) => `${key}:${value}`);
}

/** Tags as they are typed. */
export function tagText(tags: Record<string, string>): string {
  return tagTexts(tags).join(", ");
}

/** A time of the API in the form that `datetime-local` takes: that of the viewer's zone. */
export function localInput(iso: string | undefined): string | undefined {
  if (iso === undefined) return undefined;
  const time = timeOf(iso);
  if (Number.isNaN(time.getTime())) return undefined;
  const shifted = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}

/** The UTC time of a `datetime-local` field, as the API takes it. */
export function utcInput(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
