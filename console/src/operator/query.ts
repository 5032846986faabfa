// What the operator sees: customers, and senders that no customer has.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, bodyOf } from "../api/client";

const pageSize = 20;

export const customersQuery = (page: number) =>
  queryOptions({
    queryKey: ["customers", page],
    queryFn: () =>
      bodyOf(api.GET("/operator-api/v1/customers", { params: { query: { page, pageSize } } })),
    placeholderData: keepPreviousData,
  });

export const strangersQuery = (page: number) =>
  queryOptions({
    queryKey: ["strangers", page],
    queryFn: () =>
      bodyOf(api.GET("/operator-api/v1/strangers", { params: { query: { page, pageSize } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });
