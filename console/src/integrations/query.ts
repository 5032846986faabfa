// Destinations of every kind, their dead letters, and what is done with them.
import {
  infiniteQueryOptions,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";

import type { Typed } from "../ui/typed";
import { type KindName, kinds } from "./kinds";

export const destinationsQuery = (kind: KindName) =>
  queryOptions({
    queryKey: ["destinations", kind],
    queryFn: () => kinds[kind].list(),
    refetchInterval: 10_000,
  });

export const destinationQuery = (kind: KindName, id: string) =>
  queryOptions({
    queryKey: ["destinations", kind, id],
    queryFn: () => kinds[kind].show(id),
    refetchInterval: 3_000,
  });

export const lettersQuery = (kind: KindName, id: string) =>
  infiniteQueryOptions({
    queryKey: ["destinations", kind, id, "letters"],
    queryFn: ({ pageParam }) => kinds[kind].letters(id, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor,
    // Whoever loaded more of them acts on them before they are read anew.
    refetchInterval: ({ state: { data } }) => ((data?.pages.length ?? 0) > 1 ? false : 5_000),
  });

export type Act = "test" | "restart" | "replay" | "discardAll";

/** Does something with a destination; the result is a message for people, if there is one. */
export function useAct(kind: KindName, id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (act: Act) => {
      const result: unknown = await kinds[kind][act]?.(id);
      if (typeof result !== "object" || result === null || !("message" in result)) return undefined;
      return typeof result.message === "string" ? result.message : undefined;
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["destinations", kind] }),
  });
}

/** Creates a destination; its id is the result. */
export function useCreate(kind: KindName) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: kinds[kind].create,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["destinations", kind] }),
  });
}

/** Changes a destination. */
export function useChange(kind: KindName, id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (typed: Typed) => kinds[kind].change?.(id, typed),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["destinations", kind] }),
  });
}

/** Removes a destination. */
export function useRemove(kind: KindName) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: kinds[kind].remove,
    onSuccess: () =>
      void queries.invalidateQueries({ queryKey: ["destinations", kind], exact: true }),
  });
}
