// How many are there of each? Counts that the service keeps, so that none reads a fleet.
import { queryOptions } from "@tanstack/react-query";

import { api, bodyOf } from "../api/client";
import { unlessLive } from "../live/events";
import type { DeviceSearch } from "../devices/query";
import type { Status } from "../requests/words";
import { given } from "../ui/search";

/** The shortest page: only its count is of interest. */
const pageSize = 1;

/** A count, and whether there may be more. */
export interface Count {
  number: number;
  isExact: boolean;
}

export const deviceCountQuery = (registered: boolean | undefined) =>
  queryOptions({
    queryKey: ["overview", "devices", registered],
    queryFn: () => deviceCount(given({ registered })),
    refetchInterval: unlessLive(10_000, 30_000),
  });

/** Devices that are offline. No count of them is kept: the service examines a bounded number of devices. */
export const offlineCountQuery = queryOptions({
  queryKey: ["overview", "offline"],
  queryFn: () => deviceCount({ connectivity: "OFFLINE" }),
  refetchInterval: 30_000,
});

async function deviceCount(search: Pick<DeviceSearch, "registered" | "connectivity">) {
  const query = { pageSize, ...search };
  const page = await bodyOf(api.GET("/management-api/v1/devices", { params: { query } }));
  return { number: page.total, isExact: page.totalIsExact };
}

/** How busy the devices were, minute by minute. The last minute is not over. */
export const activityQuery = queryOptions({
  queryKey: ["overview", "activity"],
  queryFn: () => bodyOf(api.GET("/management-api/v1/activity")),
  refetchInterval: 10_000,
});

export const requestCountQuery = (status: Status) =>
  queryOptions({
    queryKey: ["overview", "requests", status],
    queryFn: async (): Promise<Count> => {
      const path = "/management-api/v1/integrate/devices/actions/requests";
      const page = await bodyOf(api.GET(path, { params: { query: { pageSize, status } } }));
      // A list without items has one page, too.
      return { number: page.items.length === 0 ? 0 : page.pageAmount, isExact: true };
    },
    refetchInterval: 5_000,
  });
