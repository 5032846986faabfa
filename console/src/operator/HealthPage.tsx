// Is the service well?
import { useQuery } from "@tanstack/react-query";

import { Badge, Card, Facts, Page } from "../ui/parts";
import { ForOperator, Loaded, Notice } from "../ui/states";
import { Time } from "../ui/Time";
import { Clients } from "./Clients";
import { healthQuery } from "./query";

export function HealthPage() {
  return (
    <Page title="Health">
      <ForOperator>
        <Health />
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
            <p className="muted">
              <a href="/metrics">The metrics</a> say more, to people and to Prometheus.
            </p>
          </>
        )}
      </Loaded>
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
