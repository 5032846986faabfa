import { expect, test } from "vitest";

import { withNewest } from "./newest";

interface Page {
  items: { id: number; text?: string }[];
  next: number;
}

const page = (next: number, ...ids: number[]): Page => ({ items: ids.map((id) => ({ id })), next });
const loaded = (...pages: Page[]) => ({ pages, pageParams: pages.map(() => undefined) });
const idOf = ({ id }: { id: number }) => id;

function idsOf(data: { pages: Page[] }): number[][] {
  return data.pages.map(({ items }) => items.map(idOf));
}

test("newer items come before those that were loaded, whose next page stays where it was", () => {
  const grown = withNewest(loaded(page(4, 6, 5), page(2, 4, 3)), page(6, 8, 7, 6), idOf);
  expect(idsOf(grown)).toEqual([
    [8, 7, 6, 5],
    [4, 3],
  ]);
  expect(grown.pages.map(({ next }) => next)).toEqual([4, 2]);
});

test("an item that changed is replaced", () => {
  const changed = { items: [{ id: 6, text: "changed" }], next: 6 };
  const { pages } = withNewest(loaded(page(4, 6, 5)), changed, idOf);
  expect(pages[0]?.items).toEqual([{ id: 6, text: "changed" }, { id: 5 }]);
});

test("the list begins anew if items were missed, and if it is very long", () => {
  expect(idsOf(withNewest(loaded(page(4, 6, 5)), page(8, 10, 9), idOf))).toEqual([[10, 9]]);
  expect(idsOf(withNewest(loaded(page(0)), page(0, 1), idOf))).toEqual([[1]]);
  const long = Array.from({ length: 500 }, (_, index) => 500 - index);
  expect(idsOf(withNewest(loaded(page(0, ...long)), page(490, 501, 500), idOf))).toEqual([
    [501, 500],
  ]);
});
