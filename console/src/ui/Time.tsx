// A time in the viewer's zone, with UTC on hover.
import { useSyncExternalStore } from "react";

import { ageOf, localTime, timeOf, utcTime } from "./time";

let now = Date.now();

function subscribe(changed: () => void): () => void {
  const timer = window.setInterval(() => {
    now = Date.now();
    changed();
  }, 5_000);
  return () => window.clearInterval(timer);
}

export function Time(props: { at: string }) {
  const time = timeOf(props.at);
  return (
    <time dateTime={time.toISOString()} title={utcTime(time)}>
      {localTime(time)}
    </time>
  );
}

/** How long ago something was; it grows while one looks. */
export function Age(props: { at: string }) {
  const current = useSyncExternalStore(subscribe, () => now);
  const time = timeOf(props.at);
  return (
    <time dateTime={time.toISOString()} title={`${localTime(time)} · ${utcTime(time)}`}>
      {ageOf(time, Math.max(current, time.getTime()))}
    </time>
  );
}
