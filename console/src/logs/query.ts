// The administration log: its entries, their payloads, and how many there were each day.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { type Schemas, api, bodyOf } from "../api/client";
import { unlessLive } from "../live/events";

export const categories = [
  ["error", "Errors"],
  ["info", "Information"],
] as const;

export const types = [
  ["DEVICE", "Device"],
  ["LIFECYCLE", "Lifecycle"],
  ["INTEGRATION", "Integration"],
  ["GENERAL", "General"],
] as const satisfies readonly (readonly [Schemas["LogEntry"]["type"], string])[];

/** Which entries a list shows. */
export interface LogSearch {
  category?: "error" | "info";
  type?: Schemas["LogEntry"]["type"];
  deviceId?: string;
  iccid?: string;
  kind?: string;
  startDateTime?: string;
  endDateTime?: string;
  page?: number;
}

export const logQuery = (search: LogSearch) =>
  queryOptions({
    queryKey: ["log", search],
    queryFn: () =>
      bodyOf(
        api.GET("/management-api/v1/administrationLogs", {
          params: { query: { ...search, pageSize: 20 } },
        }),
      ),
    placeholderData: keepPreviousData,
    // Only errors are events.
    refetchInterval: unlessLive(10_000, 30_000),
  });

export const entryQuery = (entry: string) =>
  queryOptions({
    queryKey: ["log", "entry", entry],
    queryFn: () =>
      bodyOf(
        api.GET("/management-api/v1/administrationLogs/{entry}", { params: { path: { entry } } }),
      ),
    staleTime: Infinity,
  });

export const payloadQuery = (entry: string) =>
  queryOptions({
    queryKey: ["log", "entry", entry, "payload"],
    queryFn: async () => {
      const params = { path: { entry } };
      const path = "/management-api/v1/administrationLogs/{entry}/payload";
      const bytes: unknown = await bodyOf(api.GET(path, { params, parseAs: "arrayBuffer" }));
      return new Uint8Array(bytes as ArrayBuffer);
    },
    staleTime: Infinity,
  });

export const statisticsQuery = queryOptions({
  queryKey: ["log", "statistics"],
  queryFn: () => {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    const query = { timezone: timeZone, category: "error" as const };
    return bodyOf(api.GET("/management-api/v1/administrationLogs/stats", { params: { query } }));
  },
  refetchInterval: 60_000,
});
