// Action requests: the list, one of them, and those that create and cancel them.
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { type Schemas, api, bodyOf } from "../api/client";

export type Status = Schemas["ActionRequest"]["status"];

export const statuses = [
  ["SCHEDULED", "Scheduled"],
  ["IN_PROGRESS", "In progress"],
  ["SUCCEEDED", "Succeeded"],
  ["FAILED", "Failed"],
  ["CANCELLED", "Cancelled"],
] as const satisfies readonly (readonly [Status, string])[];

export const protocols = [
  ["LWM2M", "LwM2M"],
  ["COAP", "CoAP"],
  ["UDP", "UDP"],
] as const;

/** A protocol as people write it. */
export function protocolName(protocol: "UDP" | "COAP" | "LWM2M"): string {
  return protocols.find(([word]) => word === protocol)?.[1] ?? protocol;
}

/** Which requests a list shows. */
export interface RequestSearch {
  status?: Status;
  protocol?: "UDP" | "COAP" | "LWM2M";
  deviceId?: string;
  page?: number;
}

export const requestsQuery = (search: RequestSearch) =>
  queryOptions({
    queryKey: ["requests", search],
    queryFn: () =>
      bodyOf(
        api.GET("/management-api/v1/integrate/devices/actions/requests", {
          params: { query: { ...search, pageSize: 20 } },
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });

/** Whether a status never changes. */
export function isFinal(status: Status): boolean {
  return status !== "SCHEDULED" && status !== "IN_PROGRESS";
}

export const requestQuery = (request: string) =>
  queryOptions({
    queryKey: ["requests", "one", request],
    queryFn: () =>
      bodyOf(
        api.GET("/management-api/v1/integrate/devices/actions/requests/{request}", {
          params: { path: { request } },
        }),
      ),
    // A person waits for the answer.
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && isFinal(data.status) ? false : 1_000,
  });

/** Creates a request over LwM2M; its id is the result. */
export function useCreateRequest(device: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (body: Schemas["Lwm2mAction"]) => {
      const params = { path: { device } };
      const path = "/management-api/v1/integrate/devices/{device}/actions/LWM2M";
      return (await bodyOf(api.POST(path, { params, body }))).id;
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["device", device] }),
  });
}

/** Cancels a request that was not sent yet. */
export function useCancelRequest() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (request: string) =>
      bodyOf(
        api.DELETE("/management-api/v1/integrate/devices/actions/requests/{request}", {
          params: { path: { request } },
        }),
      ),
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ["requests"] }),
        queries.invalidateQueries({ queryKey: ["device"] }),
      ]),
  });
}
