// How is the fleet, what waits, what failed? Each number leads to what it counts.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Destinations } from "../integrations/IntegrationsPage";
import { useFleetEvents } from "../live/events";
import { Statistics } from "../logs/LogPage";
import { statuses } from "../requests/words";
import { useScope } from "../session/query";
import { Chart } from "../ui/Chart";
import { Card, Facts, Page } from "../ui/parts";
import { Empty, Loaded } from "../ui/states";
import { timeOf } from "../ui/time";
import {
  type Count,
  activityQuery,
  deviceCountQuery,
  offlineCountQuery,
  requestCountQuery,
} from "./query";

export function OverviewPage() {
  useFleetEvents(["LIFECYCLE", "ERROR", "ACTION_RESULT"]);
  const maySee = {
    devices: useScope("devices:read"),
    requests: useScope("actions:read"),
    log: useScope("logs:read"),
    integrations: useScope("integrations:read"),
  };
  const seesNothing = !Object.values(maySee).some(Boolean);
  return (
    <Page title="Overview">
      {seesNothing && (
        <Empty title="Nothing to see.">Your API client has no scope that reads anything.</Empty>
      )}
      <div className="grid">
        {maySee.devices && <Devices />}
        {maySee.requests && <Requests />}
        {maySee.devices && <Activity />}
        {maySee.log && <Statistics />}
        {maySee.integrations && (
          <Card title="Webhooks">
            <Destinations kind="webhooks" />
          </Card>
        )}
      </div>
    </Page>
  );
}

function Devices() {
  const all = useQuery(deviceCountQuery(undefined));
  const registered = useQuery(deviceCountQuery(true));
  const others = useQuery(deviceCountQuery(false));
  const offline = useQuery(offlineCountQuery);
  return (
    <Card title="Devices">
      <Facts
        of={[
          [
            "All",
            <Link key="" to="/devices">
              <CountText of={all} />
            </Link>,
          ],
          [
            "Registered",
            <Link key="" to="/devices" search={{ registered: true }}>
              <CountText of={registered} />
            </Link>,
          ],
          [
            "Not registered",
            <Link key="" to="/devices" search={{ registered: false }}>
              <CountText of={others} />
            </Link>,
          ],
          [
            "Offline",
            <Link key="" to="/devices" search={{ connectivity: "OFFLINE" }}>
              <CountText of={offline} />
            </Link>,
          ],
        ]}
      />
    </Card>
  );
}

function Activity() {
  return (
    <Card title="Activity per minute">
      <Loaded what="activity" query={useQuery(activityQuery)}>
        {({ minutes }) => {
          const over = minutes.slice(0, -1);
          const points = over.map(({ start, events }) => ({
            time: timeOf(start).getTime(),
            value: events,
          }));
          const last = over.at(-1);
          const sum = (what: "events" | "requests") =>
            minutes.reduce((sum, minute) => sum + minute[what], 0);
          return (
            <>
              {points.length > 1 && last !== undefined && (
                <Chart label="Events per minute" points={points} lastValue={last.events} />
              )}
              <Facts
                of={[
                  ["Events in the last minute", last?.events ?? "…"],
                  ["Events within the hour", sum("events")],
                  ["Requests within the hour", sum("requests")],
                ]}
              />
              <p className="muted small">Since the last start of the service, an hour at most.</p>
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}

function Requests() {
  return (
    <Card title="Requests of the last 7 days">
      <Facts
        of={statuses.map(([status, label]) => [
          label,
          <Link key={status} to="/requests" search={{ status }}>
            <RequestCount status={status} />
          </Link>,
        ])}
      />
    </Card>
  );
}

function RequestCount(props: { status: (typeof statuses)[number][0] }) {
  return <CountText of={useQuery(requestCountQuery(props.status))} />;
}

function CountText({ of: { data, error } }: { of: UseQueryResult<Count> }) {
  if (data === undefined) return error === null ? "…" : "not known";
  return data.isExact ? `${data.number}` : `more than ${data.number}`;
}
