// Devices: the list, one of them, its messages, and the names of its objects.
import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useQueries,
  useQuery,
} from "@tanstack/react-query";

import { type Schemas, api, bodyOf } from "../api/client";
import { useScope } from "../session/query";
import { type ObjectInfo, infoOfDefinition, loadRegistry } from "./objects";

/** Which devices the list shows. */
export interface DeviceSearch {
  q?: string;
  registered?: boolean;
  protocol?: "UDP" | "COAP" | "LWM2M";
  tag?: string;
  cursor?: string;
}

/** Devices on a page: few enough for a phone, and the fleet is never read as a whole. */
const pageSize = 25;

export const devicesQuery = ({ tag, ...search }: DeviceSearch) =>
  queryOptions({
    queryKey: ["devices", { ...search, tag }],
    queryFn: () => {
      const query = { ...search, pageSize, ...(tag === undefined ? {} : { tag: [tag] }) };
      return bodyOf(api.GET("/management-api/v1/devices", { params: { query } }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const deviceQuery = (device: string) =>
  queryOptions({
    queryKey: ["device", device],
    queryFn: () =>
      bodyOf(api.GET("/management-api/v1/devices/{device}", { params: { path: { device } } })),
    refetchInterval: 3_000,
  });

export const messagesQuery = (device: string) =>
  infiniteQueryOptions({
    queryKey: ["device", device, "messages"],
    queryFn: ({ pageParam }) => {
      const query = { pageSize, ...(pageParam === undefined ? {} : { cursor: pageParam }) };
      const params = { path: { device }, query };
      return bodyOf(api.GET("/management-api/v1/devices/{device}/messages", { params }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor,
    refetchInterval: 10_000,
  });

const registryQuery = queryOptions({
  queryKey: ["registry"],
  queryFn: loadRegistry,
  staleTime: Infinity,
});

const definitionsQuery = queryOptions({
  queryKey: ["definitions"],
  queryFn: () => bodyOf(api.GET("/management-api/v1/lwm2m/objects")),
  staleTime: 300_000,
});

const definitionQuery = ({ objectId: object, version }: Schemas["ObjectDefinition"]) =>
  queryOptions({
    queryKey: ["definitions", object, version],
    queryFn: async () => {
      const params = { path: { object, version } };
      const path = "/management-api/v1/lwm2m/objects/{object}/{version}";
      const body = await bodyOf(api.GET(path, { params }));
      // It is a text, of XML, only for callers that accept no JSON.
      return body as Schemas["WholeObjectDefinition"];
    },
    staleTime: 300_000,
  });

/** What the objects of a device are called: its customer's own definitions precede the registry. */
export function useObjectInfo(
  registered: readonly Schemas["OfferedObject"][],
): ((object: number) => ObjectInfo | undefined) | undefined {
  const { data: registry } = useQuery(registryQuery);
  const { data: definitions } = useQuery({
    ...definitionsQuery,
    enabled: useScope("settings:read"),
  });
  const own = (definitions?.items ?? []).filter((definition) =>
    registered.some(
      (object) =>
        object.id === definition.objectId && (object.version ?? "1.0") === definition.version,
    ),
  );
  const whole = useQueries({ queries: own.map(definitionQuery) });
  if (registry === undefined) return undefined;
  return (object) => {
    const definition = whole.find(({ data }) => data?.objectId === object)?.data;
    return definition === undefined ? registry(object) : infoOfDefinition(definition);
  };
}
