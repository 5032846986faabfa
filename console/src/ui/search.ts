// How are the parameters of an address read? What is not valid is left out.

/** The parameters of an address, as the router gives them. */
export type Search = Record<string, unknown>;

/** A text. */
export function text(search: Search, name: string): string | undefined {
  const value = search[name];
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** One of some words. */
export function word<T extends string>(
  search: Search,
  name: string,
  words: readonly (readonly [T, string])[],
): T | undefined {
  return words.find(([known]) => known === search[name])?.[0];
}

/** A whole number from 0 on. */
export function whole(search: Search, name: string): number | undefined {
  const value = text(search, name);
  return value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}

/** A page number from 2 on: the first page is the one without a number. */
export function page(search: Search): number | undefined {
  const number = Number(search["page"]);
  return Number.isInteger(number) && number > 1 ? number : undefined;
}

/** The parameters, or other properties, that have a value. */
export function given<T extends object>(all: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const pairs = Object.entries(all).filter(([, value]) => value !== undefined);
  return Object.fromEntries(pairs) as { [K in keyof T]?: NonNullable<T[K]> };
}
