// A page of a list as a table, with links to the pages beside it.
import type { ComponentProps, ReactNode } from "react";

import { Pager } from "./Pager";
import { DataTable } from "./parts";
import { Loaded, type Result } from "./states";

/** The table of a page that is loaded, or what there is instead of one without rows. */
export function PagedTable<T>({
  what,
  query,
  empty,
  ...table
}: {
  what: string;
  query: Result<{ items: T[]; page: number; pageAmount: number }>;
  empty: ReactNode;
} & Omit<ComponentProps<typeof DataTable<T>>, "rows">) {
  return (
    <Loaded what={what} query={query}>
      {({ items, page, pageAmount }) =>
        items.length === 0 ? (
          empty
        ) : (
          <>
            <DataTable {...table} rows={items} />
            <Pager page={page} pages={pageAmount} />
          </>
        )
      }
    </Loaded>
  );
}
