// Is the service well?
import { useQuery } from "@tanstack/react-query";

import { Chart } from "../ui/Chart";
import { Badge, Card, Facts, Page } from "../ui/parts";
import { ForOperator, Loaded, Notice } from "../ui/states";
import { Time } from "../ui/Time";
import { Clients } from "./Clients";
import { type Reading, bytesText, counters, perMinute } from "./figures";
import { healthQuery, readingsQuery } from "./query";

export function HealthPage() {
  return (
    <Page title="Health">
      <ForOperator>
        <div className="grid">
          <Health />
          <Figures />
        </div>
      </ForOperator>
    </Page>
  );
}

function Health() {
  return (
    <Card title="Service">
      <Loaded what="health" query={useQuery(healthQuery)}>
        {({ isReady, smpp, lost }) => (
          <>
            {lost !== undefined && (
              <Notice tone="bad">
                The store has lost {lost.groups} groups of writes between <Time at={lost.from} />{" "}
                and <Time at={lost.until} />.
              </Notice>
            )}
            <Facts
              of={[
                [
                  "State",
                  <Badge key="" tone={isReady ? "good" : "bad"}>
                    {isReady ? "Ready" : "Not ready"}
                  </Badge>,
                ],
                [
                  "SMS centre",
                  smpp === undefined
                    ? "none is configured"
                    : smpp === "bound"
                      ? "bound"
                      : "not bound",
                ],
              ]}
            />
          </>
        )}
      </Loaded>
    </Card>
  );
}

function Figures() {
  return (
    <Loaded what="metrics" query={useQuery(readingsQuery)}>
      {(readings) => {
        const now = readings.at(-1);
        return (
          <>
            <Activity readings={readings} />
            {now !== undefined && <State now={now} />}
          </>
        );
      }}
    </Loaded>
  );
}

function Activity({ readings }: { readings: readonly Reading[] }) {
  const received = perMinute(readings, "received");
  const last = received.at(-1)?.value;
  return (
    <Card title="Activity per minute">
      {received.length > 1 && last !== undefined && (
        <Chart label="Datagrams received per minute" points={received} lastValue={last} />
      )}
      <Facts
        of={counters.map(([counter, label]) => {
          const rate = perMinute(readings.slice(-2), counter).at(-1)?.value;
          return [label, rate === undefined ? "…" : Math.round(rate)];
        })}
      />
      <p className="muted small">While this view is open. Of all customers.</p>
    </Card>
  );
}

/** A size, unless the store has no file: it is in a database. */
function ofFile(now: Reading, bytes: number): string | undefined {
  return now.storeBytes === 0 ? undefined : bytesText(bytes);
}

function State({ now }: { now: Reading }) {
  return (
    <Card title="Devices, deliveries and store">
      <Facts
        of={[
          ["Registered devices", now.registered],
          ["Other devices", now.unregistered],
          ["Requests that are not final", now.waiting],
          ["Webhooks that failed", now.failedDestinations],
          ["Dead letters", now.deadLetters],
          ["Free on the disk of the store", ofFile(now, now.freeBytes)],
          ["File of the store", ofFile(now, now.storeBytes)],
          ["Batches that wait for the store", now.queuedBatches],
          ["A write to the disk takes", now.fsyncMs && `${now.fsyncMs.toFixed(1)} ms`],
        ]}
      />
      <p className="muted">
        <a href="/metrics">The metrics</a> say more, to people and to Prometheus.
      </p>
    </Card>
  );
}

export function NetworkPage() {
  return (
    <Page
      title="Network"
      lead="Programs of the network, which hand in SMS and delivery reports where there is no SMPP."
    >
      <ForOperator>
        <Clients owner="network" />
      </ForOperator>
    </Page>
  );
}
