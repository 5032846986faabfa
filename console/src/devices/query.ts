// Devices: the list, one of them, its messages, and the names of its objects.
import { keepPreviousData, queryOptions, useQueries, useQuery } from "@tanstack/react-query";

import { type Schemas, api, bodyOf } from "../api/client";
import { unlessLive } from "../live/events";
import { useScope } from "../session/query";
import type { NewestFirst } from "../ui/newest";
import { given } from "../ui/search";
import type { HistorySearch, Message } from "./history";
import { type ObjectInfo, infoOfDefinition, loadRegistry } from "./objects";

/** Which devices the list shows. */
export interface DeviceSearch {
  q?: string;
  registered?: boolean;
  protocol?: "UDP" | "COAP" | "LWM2M";
  tag?: string;
  version?: (typeof versions)[number][0];
  object?: number;
  firmware?: string;
  lastSeenBefore?: string;
  lastSeenAfter?: string;
  connectivity?: (typeof connectivities)[number][0];
  cursor?: string;
}

export const connectivities = [
  ["ONLINE", "Online"],
  ["OFFLINE", "Offline"],
] as const;

export const versions = [
  ["1.0", "1.0"],
  ["1.1", "1.1"],
  ["1.2", "1.2"],
] as const;

/** The filter of jobs that matches what a list shows. */
export function filterOf(search: DeviceSearch): Schemas["DeviceFilter"] {
  return given({ ...search, cursor: undefined });
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
    // No event tells that a device fell asleep, or what became of a request that did not fail.
    refetchInterval: unlessLive(3_000, 10_000),
  });

const messages = "/management-api/v1/devices/{device}/messages";

/** A page of messages, newest first; a chart takes more of them at a time. */
function messagesOf(device: string, search: HistorySearch, pageSize: number, cursor?: string) {
  const query = { ...search, pageSize, ...given({ cursor }) };
  return bodyOf(api.GET(messages, { params: { path: { device }, query } }));
}

type MessagePage = Awaited<ReturnType<typeof messagesOf>>;

export const history = (
  device: string,
  search: HistorySearch,
): NewestFirst<Message, MessagePage, string> => ({
  queryKey: ["device", device, "messages", search],
  read: (cursor) => messagesOf(device, search, search.path === undefined ? 25 : 100, cursor),
  behind: ({ nextCursor }) => nextCursor,
  idOf: ({ id }) => id,
  // SMS are among the messages, and not among the events.
  refetchInterval: unlessLive(10_000, 30_000),
});

/** A week: as long as messages are kept by default. */
const weekMs = 7 * 24 * 3_600_000;

/** The numbers of a path, reduced to what a chart has room for. */
export const seriesQuery = (device: string, path: string, { from, to }: HistorySearch) =>
  queryOptions({
    queryKey: ["device", device, "series", path, from, to],
    queryFn: () => {
      const end = to ?? new Date().toISOString();
      const start = from ?? new Date(new Date(end).getTime() - weekMs).toISOString();
      const query = { path, from: start, to: end, points: 300 };
      const params = { path: { device }, query };
      return bodyOf(api.GET("/management-api/v1/devices/{device}/series", { params }));
    },
    refetchInterval: unlessLive(10_000, 60_000),
  });

/** As many messages as a file takes: a device of a message a minute has as many in a week. */
const exportedMax = 10_000;

/** All messages that match, and whether there are more than a file takes. */
export async function wholeHistory(
  device: string,
  search: HistorySearch,
): Promise<{ messages: Message[]; isCut: boolean }> {
  const all: Message[] = [];
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await messagesOf(device, search, 100, cursor);
    all.push(...items);
    cursor = nextCursor;
  } while (cursor !== undefined && all.length < exportedMax);
  return { messages: all, isCut: cursor !== undefined };
}

const registryQuery = queryOptions({
  queryKey: ["registry"],
  queryFn: loadRegistry,
  staleTime: Infinity,
});

export const definitionsQuery = queryOptions({
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
