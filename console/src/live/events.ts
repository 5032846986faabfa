// Which events does a view hear of, and what do they change? A visible page reads one stream of server-sent
// events, and polls while it has none.
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import type { Schemas } from "../api/client";
import { useScope } from "../session/query";
import { type Paced, paced } from "./pace";

/** The types of events that are streamed. */
export type EventName = Schemas["EventType"]["type"];

/** What the page reads again after an event. */
const changedBy: Record<EventName, readonly (readonly string[])[]> = {
  TELEMETRY_DATA: [["device"]],
  LIFECYCLE: [["device"], ["overview", "devices"]],
  // A request that failed is such an error; results are events only if a destination wants them.
  ERROR: [["device"], ["log"], ["requests"], ["overview", "requests"]],
  ACTION_RESULT: [["device"], ["requests"], ["overview", "requests"]],
};

const all = Object.keys(changedBy) as EventName[];

/** Events of many devices may come without a pause: a view of counts follows them more slowly than a person. */
const fleetPauseMs = 5_000;

/** The pause between two looks at one device, whose events a person watches. */
const devicePauseMs = 500;

/** After so long the page asks again for a stream that was refused. */
const refusedMs = 30_000;

/** Whether the page has a stream. */
let isLive = false;

/** How often a query polls: seldom while events tell of what changes. */
export function unlessLive(pollingMs: number, liveMs: number): () => number {
  return () => (isLive ? liveMs : pollingMs);
}

/** Follows the events of one device. */
export function useDeviceEvents(deviceId: string): void {
  useEvents(all, devicePauseMs, deviceId);
}

/** Follows the events of some types of all devices. */
export function useFleetEvents(types: readonly EventName[]): void {
  useEvents(types, fleetPauseMs);
}

function useEvents(types: readonly EventName[], pauseMs: number, deviceId?: string): void {
  const queries = useQueryClient();
  const mayRead = useScope("devices:read");
  const named = types.join(",");
  useEffect(() => {
    if (!mayRead) return;
    const search = new URLSearchParams({ type: named, ...(deviceId && { deviceId }) });
    const stream = new Stream(search, queries, pauseMs);
    return () => stream.stop();
  }, [mayRead, named, pauseMs, deviceId, queries]);
}

/** The stream of a view, which is open while the page is visible: a browser has few connections to a service. */
class Stream {
  private source: EventSource | undefined;
  private timer: number | undefined;
  private readonly changed = new Set<EventName>();
  private readonly look: Paced;

  constructor(
    private readonly search: URLSearchParams,
    private readonly queries: QueryClient,
    pauseMs: number,
  ) {
    this.look = paced(() => this.readAgain(), pauseMs);
    document.addEventListener("visibilitychange", this.follow);
    this.follow();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.follow);
    this.look.stop();
    this.close();
  }

  private readonly follow = () => {
    this.close();
    if (document.visibilityState === "visible") this.open();
  };

  private open(): void {
    const source = new EventSource(`/console/api/management-api/v1/events/stream?${this.search}`);
    this.source = source;
    source.onopen = () => {
      isLive = true;
      // What happened before the stream began is in no event of it.
      this.note(all);
    };
    source.onerror = () => {
      isLive = false;
      // Polling begins with the next answer. The browser resumes a stream that broke off; one that was refused
      // is asked for again.
      this.note(all);
      if (source.readyState !== EventSource.CLOSED) return;
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(this.follow, refusedMs);
    };
    for (const type of all) source.addEventListener(type, () => this.note([type]));
  }

  private close(): void {
    window.clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
    isLive = false;
  }

  private note(types: readonly EventName[]): void {
    for (const type of types) this.changed.add(type);
    this.look.ask();
  }

  private readAgain(): Promise<unknown> {
    const keys = new Set([...this.changed].flatMap((type) => changedBy[type]));
    this.changed.clear();
    return Promise.all([...keys].map((queryKey) => this.queries.invalidateQueries({ queryKey })));
  }
}
