// How does a list stay current whose newest items come first? Its first page is read again and again; the older
// ones, which a person loaded one after the other, are not.
import { type InfiniteData, useInfiniteQuery, useQuery } from "@tanstack/react-query";

/** A list whose newest items come first. */
export interface NewestFirst<Item, Page extends { items: Item[] }, Place> {
  /** What is invalidated to have the newest items read. */
  queryKey: readonly unknown[];
  /** Reads the page at a place; without one, the first. */
  read: (place?: Place) => Promise<Page>;
  /** The place of the page behind another one. */
  behind: (page: Page) => Place | undefined;
  idOf: (item: Item) => string | number;
  refetchInterval: number | (() => number);
}

/** As many items as the first page may grow to; beyond it, older ones are loaded when they are asked for again. */
const grownMax = 500;

/** The key of the loaded pages: not below that of the newest ones, so that nothing reads all of them again. */
export const loadedKey = (queryKey: readonly unknown[]) => ["loaded", ...queryKey];

/** A list as far as it was loaded, and the query that loads more of it. */
export function useNewestFirst<Item, Page extends { items: Item[] }, Place>(
  list: NewestFirst<Item, Page, Place>,
) {
  const key = loadedKey(list.queryKey);
  const { read, idOf } = list;
  type Loaded = InfiniteData<Page, Place | undefined>;
  const query = useInfiniteQuery<Page, Error, Loaded, readonly unknown[], Place | undefined>({
    queryKey: key,
    queryFn: ({ pageParam }) => read(pageParam as Place | undefined),
    initialPageParam: undefined,
    getNextPageParam: list.behind,
    staleTime: Infinity,
  });
  // The key has what the functions are made of.
  // eslint-disable-next-line @tanstack/query/exhaustive-deps
  const { error } = useQuery({
    queryKey: list.queryKey,
    queryFn: async ({ client }) => {
      const newest = await read();
      client.setQueryData<Loaded>(key, (loaded) => loaded && withNewest(loaded, newest, idOf));
      return null;
    },
    enabled: query.isSuccess,
    refetchInterval: list.refetchInterval,
  });
  const loaded = query.data?.pages.flatMap((page) => page.items);
  return {
    query,
    result: {
      data: loaded && unique(loaded, idOf),
      error: query.error ?? error,
      refetch: query.refetch,
    },
  };
}

/** The loaded pages with the newest items; that page alone if items between them were missed. */
export function withNewest<Item, Page extends { items: Item[] }, Place>(
  loaded: InfiniteData<Page, Place | undefined>,
  newest: Page,
  idOf: (item: Item) => string | number,
): InfiniteData<Page, Place | undefined> {
  const [first, ...older] = loaded.pages;
  const ids = new Set(newest.items.map(idOf));
  const kept = first?.items.filter((item) => !ids.has(idOf(item))) ?? [];
  const isConnected = first !== undefined && kept.length < first.items.length;
  if (!isConnected || newest.items.length + kept.length > grownMax) {
    return { pages: [newest], pageParams: [undefined] };
  }
  return { ...loaded, pages: [{ ...first, items: [...newest.items, ...kept] }, ...older] };
}

/** Pages that are counted from the first item may have an item twice, once others came before it. */
function unique<Item>(items: readonly Item[], idOf: (item: Item) => string | number): Item[] {
  return [...new Map(items.toReversed().map((item) => [idOf(item), item])).values()].toReversed();
}
