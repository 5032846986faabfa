// The kinds of destinations, each with its routes of the API and one shape for all.
import { type Schemas, api, bodyIfAny, bodyOf } from "../api/client";
import type { Scope } from "../session/query";
import { given } from "../ui/search";
import type { Typed } from "../ui/typed";
import { wantedOf } from "./wantedEvents";

export type KindName = "webhooks" | "mqtt" | "plugins" | "sms";

export type State = "NEW" | "ACTIVE" | "FAILED";

/** A system that events are delivered to. */
export interface Destination {
  kind: KindName;
  id: string;
  name: string;
  target: string;
  state: State;
  failureReason: string | undefined;
  replaying: boolean;
  eventTypes: Schemas["EventType"][];
  created: string;
  updated: string;
  backlog: Schemas["Backlog"] | undefined;
  /** What can be changed of a webhook. */
  webhook?: Schemas["Webhook"];
  /** What can be changed of a broker. */
  broker?: Schemas["Broker"];
}

type Page<T> = Promise<{ items: T[]; pageAmount: number }>;

/** What can be done with the destinations of a kind. */
export interface Kind {
  title: string;
  read: Scope;
  write: Scope;
  list: () => Page<Destination>;
  show: (id: string) => Promise<Destination>;
  /** Sends a test event, where the kind has one. */
  test?: (id: string) => Promise<Schemas["TestedWebhook"]>;
  /** Resumes deliveries, where the kind can fail as a whole. */
  restart?: (id: string) => Promise<unknown>;
  /** Creates one from what was typed; its id is the result. */
  create: (typed: Typed) => Promise<string>;
  /** Changes one to what was typed, where the kind can be changed. */
  change?: (id: string, typed: Typed) => Promise<unknown>;
  remove: (id: string) => Promise<unknown>;
  letters: (
    id: string,
    cursor?: string,
  ) => Promise<{ items: Schemas["DeadLetter"][]; nextCursor?: string }>;
  replay: (id: string) => Promise<unknown>;
  discardAll: (id: string) => Promise<unknown>;
}

const clouds = "/management-api/v1/integrate/clouds";
const forwarder = "/management-api/v1/sms/forwarder";
const everyone = { params: { query: { pageSize: 100 } } };

const letterQuery = (cursor?: string) => ({
  pageSize: 20,
  ...given({ cursor }),
});

const webhook = (id: string) => ({ params: { path: { webhook: id } } });
const broker = (id: string) => ({ params: { path: { broker: id } } });
const plugin = (id: string) => ({ params: { path: { plugin: id } } });

export const kinds: Record<KindName, Kind> = {
  webhooks: {
    title: "Webhooks",
    read: "integrations:read",
    write: "integrations:write",
    list: async () => paged(await bodyOf(api.GET(`${clouds}/webhooks`, everyone)), ofWebhook),
    show: async (id) =>
      ofWebhook(await bodyOf(api.GET(`${clouds}/webhooks/{webhook}`, webhook(id)))),
    test: (id) => bodyOf(api.POST(`${clouds}/webhooks/{webhook}/test`, webhook(id))),
    restart: (id) => bodyOf(api.POST(`${clouds}/webhooks/{webhook}/restart`, webhook(id))),
    create: async (typed) => {
      const body = { ...webhookOf(typed), ...given({ secret: typed("secret") }) };
      return (await bodyOf(api.POST(`${clouds}/webhooks`, { body }))).id;
    },
    change: (id, typed) => {
      const removed = typed("removeSecret") === undefined ? undefined : null;
      const secret = typed("secret") ?? removed;
      const body = { ...webhookOf(typed), ...(secret !== undefined && { secret }) };
      return bodyOf(api.PATCH(`${clouds}/webhooks/{webhook}`, { ...webhook(id), body }));
    },
    remove: (id) => bodyOf(api.DELETE(`${clouds}/webhooks/{webhook}`, webhook(id))),
    letters: (id, cursor) =>
      bodyOf(
        api.GET(`${clouds}/webhooks/{webhook}/deadletters`, {
          params: { ...webhook(id).params, query: letterQuery(cursor) },
        }),
      ),
    replay: (id) =>
      bodyOf(api.POST(`${clouds}/webhooks/{webhook}/deadletters/replay`, webhook(id))),
    discardAll: (id) => bodyOf(api.DELETE(`${clouds}/webhooks/{webhook}/deadletters`, webhook(id))),
  },
  mqtt: {
    title: "MQTT brokers",
    read: "integrations:read",
    write: "integrations:write",
    list: async () => paged(await bodyOf(api.GET(`${clouds}/mqtt`, everyone)), ofBroker),
    show: async (id) => ofBroker(await bodyOf(api.GET(`${clouds}/mqtt/{broker}`, broker(id)))),
    test: (id) => bodyOf(api.POST(`${clouds}/mqtt/{broker}/test`, broker(id))),
    restart: (id) => bodyOf(api.POST(`${clouds}/mqtt/{broker}/restart`, broker(id))),
    create: async (typed) => {
      const login = given({ username: typed("username"), password: typed("password") });
      const body = { ...brokerOf(typed), ...login };
      return (await bodyOf(api.POST(`${clouds}/mqtt`, { body }))).id;
    },
    change: (id, typed) => {
      const username = typed("username") ?? null;
      // A password that is not typed stays, unless there is no user name for it.
      const password = typed("password") ?? (username === null ? null : undefined);
      const login = { username, ...(password !== undefined && { password }) };
      const body = { ...brokerOf(typed), ...login };
      return bodyOf(api.PATCH(`${clouds}/mqtt/{broker}`, { ...broker(id), body }));
    },
    remove: (id) => bodyOf(api.DELETE(`${clouds}/mqtt/{broker}`, broker(id))),
    letters: (id, cursor) =>
      bodyOf(
        api.GET(`${clouds}/mqtt/{broker}/deadletters`, {
          params: { ...broker(id).params, query: letterQuery(cursor) },
        }),
      ),
    replay: (id) => bodyOf(api.POST(`${clouds}/mqtt/{broker}/deadletters/replay`, broker(id))),
    discardAll: (id) => bodyOf(api.DELETE(`${clouds}/mqtt/{broker}/deadletters`, broker(id))),
  },
  plugins: {
    title: "Plugins",
    read: "plugins:read",
    write: "plugins:write",
    list: async () =>
      paged(await bodyOf(api.GET("/management-api/v1/partners/plugins", everyone)), ofPlugin),
    show: async (id) =>
      ofPlugin(await bodyOf(api.GET("/management-api/v1/partners/plugins/{plugin}", plugin(id)))),
    restart: (id) =>
      bodyOf(api.POST("/management-api/v1/partners/plugins/{plugin}/restart", plugin(id))),
    create: async (typed) => {
      const body = {
        serverDomain: typed("serverDomain") ?? "",
        webhookKey: typed("webhookKey") ?? "",
      };
      const partner = typed("partner") === "dashboard" ? "dashboard" : "gateway";
      const params = { path: { partner } } as const;
      const path = "/management-api/v1/partners/{partner}/plugins";
      return (await bodyOf(api.POST(path, { params, body }))).id;
    },
    remove: (id) => bodyOf(api.DELETE("/management-api/v1/partners/plugins/{plugin}", plugin(id))),
    letters: (id, cursor) =>
      bodyOf(
        api.GET("/management-api/v1/partners/plugins/{plugin}/deadletters", {
          params: { ...plugin(id).params, query: letterQuery(cursor) },
        }),
      ),
    replay: (id) =>
      bodyOf(
        api.POST("/management-api/v1/partners/plugins/{plugin}/deadletters/replay", plugin(id)),
      ),
    discardAll: (id) =>
      bodyOf(api.DELETE("/management-api/v1/partners/plugins/{plugin}/deadletters", plugin(id))),
  },
  sms: {
    title: "SMS forwarder",
    read: "sms:read",
    write: "sms:write",
    list: async () => {
      const one = await bodyIfAny(api.GET(forwarder));
      return { items: one === null ? [] : [ofForwarder(one)], pageAmount: 1 };
    },
    show: async () => ofForwarder(await bodyOf(api.GET(forwarder))),
    test: () => bodyOf(api.POST(`${forwarder}/test`)),
    create: async (typed) => {
      await bodyOf(api.PUT(forwarder, { body: { url: typed("url") ?? "" } }));
      return forwarderId;
    },
    change: (_, typed) => bodyOf(api.PUT(forwarder, { body: { url: typed("url") ?? "" } })),
    remove: () => bodyOf(api.DELETE(forwarder)),
    letters: (_, cursor) =>
      bodyOf(api.GET(`${forwarder}/deadletters`, { params: { query: letterQuery(cursor) } })),
    replay: () => bodyOf(api.POST(`${forwarder}/deadletters/replay`)),
    discardAll: () => bodyOf(api.DELETE(`${forwarder}/deadletters`)),
  },
};

/** The id of the forwarder: a customer has one, or none. */
const forwarderId = "forwarder";

/** What was typed of a webhook, but its secret. */
function webhookOf(typed: Typed) {
  return {
    name: typed("name") ?? "",
    url: typed("url") ?? "",
    eventTypes: wantedOf(typed),
    jsonPayloadEnabled: typed("json") !== undefined,
  };
}

/** What was typed of a broker, but its login. */
function brokerOf(typed: Typed) {
  return {
    ...webhookOf(typed),
    topicPrefix: typed("topicPrefix") ?? "",
    version: Number(typed("version") ?? 5),
    commands: typed("commands") !== undefined,
  };
}

/** The kind of an address, if there is such a kind. */
export function isKind(name: string): name is KindName {
  return Object.hasOwn(kinds, name);
}

type Followed<T> = T & { backlog?: Schemas["Backlog"] };

function ofWebhook(webhook: Followed<Schemas["Webhook"]>): Destination {
  const { name, url } = webhook;
  return { ...shared(webhook), kind: "webhooks", name, target: url, webhook };
}

function ofBroker(broker: Followed<Schemas["Broker"]>): Destination {
  const target = `${broker.url} ${broker.topicPrefix}`;
  return { ...shared(broker), kind: "mqtt", name: broker.name, target, broker };
}

function ofPlugin(plugin: Followed<Schemas["Plugin"]>): Destination {
  const { status } = plugin;
  return {
    ...shared({ ...plugin, state: status === "INSTALLED" ? "ROLLOUT_DONE" : status }),
    kind: "plugins",
    name: plugin.partner,
    target: plugin.serverDomain,
  };
}

function ofForwarder(it: Followed<Schemas["SmsForwarder"]>): Destination {
  return {
    ...shared({ ...it, id: forwarderId }),
    kind: "sms",
    name: "SMS forwarder",
    target: it.url,
  };
}

interface Shared {
  id: string;
  state: Schemas["Webhook"]["state"] | "ACTIVE" | "FAILED";
  failureReason?: string;
  replaying: boolean;
  eventTypes?: Schemas["EventType"][];
  created: string;
  updated: string;
  backlog?: Schemas["Backlog"];
}

const states: Record<Shared["state"], State> = {
  ROLLOUT_DONE: "NEW",
  INTEGRATION_ACTIVE: "ACTIVE",
  ACTIVE: "ACTIVE",
  INTEGRATION_FAILED: "FAILED",
  FAILED: "FAILED",
};

function shared(destination: Shared): Omit<Destination, "kind" | "name" | "target"> {
  return {
    id: destination.id,
    state: states[destination.state],
    failureReason: destination.failureReason,
    replaying: destination.replaying,
    eventTypes: destination.eventTypes ?? [],
    created: destination.created,
    updated: destination.updated,
    backlog: destination.backlog,
  };
}

function paged<T>(page: { items: T[]; pageAmount: number }, of: (item: T) => Destination) {
  return { items: page.items.map(of), pageAmount: page.pageAmount };
}
