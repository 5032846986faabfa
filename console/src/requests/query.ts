// Action requests: the list, one of them, and those that create and cancel them.
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, bodyOf } from "../api/client";
import type { NewRequest } from "./newRequest";
import { type Status, isFinal, type lists, type orders } from "./words";

/** Which requests a list shows. */
export interface RequestSearch {
  list?: (typeof lists)[number][0];
  sort?: (typeof orders)[number][0];
  status?: Status;
  protocol?: "UDP" | "COAP" | "LWM2M";
  deviceId?: string;
  page?: number;
}

const listed = "/management-api/v1/integrate/devices/actions/requests";

export const requestsQuery = ({ list, ...search }: RequestSearch) =>
  queryOptions({
    queryKey: ["requests", list, search],
    queryFn: () => {
      const options = { params: { query: { ...search, pageSize: 20 } } };
      if (list === "active") return bodyOf(api.GET(`${listed}/active`, options));
      if (list === "archived") return bodyOf(api.GET(`${listed}/archived`, options));
      return bodyOf(api.GET(listed, options));
    },
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });

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

/** Creates a request; its id is the result. */
export function useCreateRequest(device: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (request: NewRequest) => (await bodyOf(created(device, request))).id,
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ["device", device] }),
        queries.invalidateQueries({ queryKey: ["requests"] }),
      ]),
  });
}

function created(device: string, { protocol, body }: NewRequest) {
  const params = { path: { device } };
  const actions = "/management-api/v1/integrate/devices/{device}/actions";
  switch (protocol) {
    case "LWM2M":
      return api.POST(`${actions}/LWM2M`, { params, body });
    case "COAP":
      return api.POST(`${actions}/COAP`, { params, body });
    case "UDP":
      return api.POST(`${actions}/UDP`, { params, body });
  }
}

/** Cancels all requests to a device that were not sent yet. */
export function useCancelAll(device: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () =>
      bodyOf(
        api.DELETE("/management-api/v1/integrate/devices/{device}/actions/requests", {
          params: { path: { device } },
        }),
      ),
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ["requests"] }),
        queries.invalidateQueries({ queryKey: ["device", device] }),
      ]),
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
