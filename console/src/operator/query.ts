// What the operator sees and changes: customers, their API clients and networks, senders that no customer
// has, and the health of the service.
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { type Schemas, answered, api, bodyOf, failureOf } from "../api/client";
import { type Reading, readingOf } from "./figures";

const pageSize = 20;
const customers = "/operator-api/v1/customers";
const network = "/operator-api/v1/network/clients";

export const customersQuery = (page: number) =>
  queryOptions({
    queryKey: ["customers", page],
    queryFn: () => bodyOf(api.GET(customers, { params: { query: { page, pageSize } } })),
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

const of = (customer: string) => ({ params: { path: { customer } } });

/** Whose API clients: those of a customer, or those of the network. */
export type Owner = { customer: string } | "network";

/** An API client of a customer or of the network. */
export type AnyClient = Schemas["Client"] | Schemas["NetworkClient"];

export const clientsQuery = (owner: Owner) =>
  queryOptions({
    queryKey: ["clients", owner],
    queryFn: async (): Promise<AnyClient[]> => {
      const list =
        owner === "network"
          ? await bodyOf(api.GET(network))
          : await bodyOf(api.GET(`${customers}/{customer}/clients`, of(owner.customer)));
      return list.items;
    },
  });

export const networksQuery = (customer: string) =>
  queryOptions({
    queryKey: ["networks", customer],
    queryFn: () => bodyOf(api.GET(`${customers}/{customer}/networks`, of(customer))),
  });

export const healthQuery = queryOptions({
  queryKey: ["health"],
  queryFn: async () => {
    const response = await answered(fetch("/readyz"));
    return { isReady: response.ok, ...((await response.json()) as Health) };
  },
  refetchInterval: 5_000,
});

/** As many readings as an hour has. */
const readingsMax = 360;

/** What the metrics said while somebody looked. */
export const readingsQuery = queryOptions({
  queryKey: ["readings"],
  queryFn: async ({ client, queryKey }): Promise<Reading[]> => {
    const response = await answered(fetch("/metrics"));
    if (!response.ok) throw failureOf(response.status, undefined);
    const reading = readingOf(await response.text(), Date.now());
    const before = client.getQueryData<Reading[]>(queryKey) ?? [];
    return [...before.slice(1 - readingsMax), reading];
  },
  refetchInterval: 10_000,
});

/** What the service says of itself. */
export interface Health {
  smpp?: "bound" | "unbound";
  lost?: { from: string; groups: number; until: string };
}

export function useCreateCustomer() {
  return useOperation(
    (body: Schemas["NewCustomer"]) => bodyOf(api.POST(customers, { body })),
    ["customers"],
  );
}

export function useRemoveCustomer() {
  return useOperation(
    (customer: string) => bodyOf(api.DELETE(`${customers}/{customer}`, of(customer))),
    ["customers"],
  );
}

export function useSetNetworks(customer: string) {
  return useOperation(
    (networks: string[]) =>
      bodyOf(api.PUT(`${customers}/{customer}/networks`, { ...of(customer), body: { networks } })),
    ["networks", customer],
  );
}

/** Creates an API client; the result has its secret, which is shown once. */
export function useCreateClient(owner: Owner) {
  return useOperation(
    (body: Schemas["NewClient"]) =>
      owner === "network"
        ? bodyOf(api.POST(network, { body: { name: body.name } }))
        : bodyOf(api.POST(`${customers}/{customer}/clients`, { ...of(owner.customer), body })),
    ["clients", owner],
  );
}

export function useRemoveClient(owner: Owner) {
  return useOperation(
    (client: string) =>
      owner === "network"
        ? bodyOf(api.DELETE(`${network}/{client}`, { params: { path: { client } } }))
        : bodyOf(
            api.DELETE(`${customers}/{customer}/clients/{client}`, {
              params: { path: { customer: owner.customer, client } },
            }),
          ),
    ["clients", owner],
  );
}

/** Gives an API client a second secret, which the result shows once. */
export function useAddSecret(owner: Owner) {
  return useOperation(
    (client: string) =>
      owner === "network"
        ? bodyOf(
            api.POST(`${network}/{client}/secrets`, { params: { path: { client } }, body: {} }),
          )
        : bodyOf(
            api.POST(`${customers}/{customer}/clients/{client}/secrets`, {
              params: { path: { customer: owner.customer, client } },
              body: {},
            }),
          ),
    ["clients", owner],
  );
}

export function useRemoveSecret(owner: Owner) {
  return useOperation(
    ({ client, secret }: { client: string; secret: string }) =>
      owner === "network"
        ? bodyOf(
            api.DELETE(`${network}/{client}/secrets/{secret}`, {
              params: { path: { client, secret } },
            }),
          )
        : bodyOf(
            api.DELETE(`${customers}/{customer}/clients/{client}/secrets/{secret}`, {
              params: { path: { customer: owner.customer, client, secret } },
            }),
          ),
    ["clients", owner],
  );
}

/** Does something, after which a list is read anew; a secret leaves the memory with its view. */
function useOperation<Given, Result>(
  operation: (given: Given) => Promise<Result>,
  changed: readonly unknown[],
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: operation,
    onSuccess: () => void queries.invalidateQueries({ queryKey: changed }),
    gcTime: 0,
  });
}
