// One request: what was asked, what became of it, and everything that happened on the way.
import { useQuery } from "@tanstack/react-query";

import type { Schemas } from "../api/client";
import { DeviceLink } from "../devices/DeviceLink";
import { Card, Facts, Page } from "../ui/parts";
import { Empty, Loaded, Scoped } from "../ui/states";
import { Time } from "../ui/Time";
import { durationOf } from "../ui/time";
import { CancelButton, StatusBadge, reasonOf, summaryOf } from "./parts";
import { requestQuery } from "./query";
import { protocolName } from "./words";
import { Repeat } from "./Repeat";

export function RequestPage(props: { id: string }) {
  return (
    <Page title="Request" lead={<code className="small">{props.id}</code>}>
      <Scoped scope="actions:read">
        <Loaded what="request" query={useQuery(requestQuery(props.id))}>
          {(request) => <Request request={request} />}
        </Loaded>
      </Scoped>
    </Page>
  );
}

function Request(props: { request: Schemas["FollowedActionRequest"] }) {
  const { request } = props;
  const { requestData, resultData } = request;
  return (
    <div className="grid">
      <Card title={summaryOf(requestData)} actions={<CancelButton request={request} />}>
        <Facts
          of={[
            ["Status", <StatusBadge key="" status={request.status} />],
            ["Why it failed", resultData?.errorMessage],
            ["Device", <DeviceLink key="" id={request.deviceId} />],
            ["Protocol", protocolName(request.protocol)],
            ["Sent", request.mode === "SEND_NOW" ? "at once" : "when the device is active"],
            [
              "Attempts",
              `${request.sendAttempts - request.sendAttemptsLeft} of ${request.sendAttempts}`,
            ],
            [
              "Expires after",
              requestData.expiresIn === undefined ? undefined : durationOf(requestData.expiresIn),
            ],
            ["Created", <Time key="" at={request.created} />],
            ["Updated", <Time key="" at={request.updated} />],
            ["Trace id", <code key="">{requestData.traceId}</code>],
          ]}
        />
      </Card>
      <Card title="Answer">
        {resultData?.payload === undefined && resultData?.code === undefined ? (
          <Empty title="No answer yet." />
        ) : (
          <>
            <Facts of={[["Response code", codeText(resultData.code)]]} />
            {resultData.payload !== undefined && <pre>{pretty(resultData.payload)}</pre>}
          </>
        )}
      </Card>
      <Repeat request={request} />
      <Card title="Timeline">
        <Timeline of={request.timeline} />
      </Card>
    </div>
  );
}

const events: Record<Schemas["TimelineEvent"]["event"], string> = {
  WAITING: "Could not be sent at once",
  ATTEMPT_BEGUN: "Attempt begun",
  DATAGRAM_SENT: "Datagram sent",
  DATAGRAM_REPEATED: "Datagram repeated",
  ACKNOWLEDGED: "Acknowledged; the response follows",
  ATTRIBUTES_WRITTEN: "Attributes written",
  ANSWERED: "Answered",
  REJECTED: "Rejected with a Reset",
  GAVE_UP: "No response",
  WAKE_UP_SMS: "SMS to wake the device",
};

function Timeline(props: { of: readonly Schemas["TimelineEvent"][] }) {
  if (props.of.length === 0) return <Empty title="Nothing was sent yet." />;
  return (
    <ol className="timeline">
      {props.of.map((entry, index) => (
        // The entries of a timeline never move.
        <li key={index}>
          <Time at={entry.time} />
          <span>
            {events[entry.event]}
            {entry.attempt !== undefined && ` (attempt ${entry.attempt})`}
            {entry.code !== undefined && `: ${codeText(entry.code) ?? ""}`}
            {entry.diagnostic !== undefined && ` ${entry.diagnostic}`}
            {entry.for !== undefined && `: waits for ${reasonOf(entry.for)}`}
            {entry.status !== undefined && `: ${entry.status}`}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** A CoAP code as the standard writes it: 205 is 2.05. */
function codeText(code: string | undefined): string | undefined {
  return code === undefined ? undefined : `${code.charAt(0)}.${code.slice(1)}`;
}

function pretty(payload: string): string {
  if (!/^[[{]/.test(payload)) return payload;
  try {
    return JSON.stringify(JSON.parse(payload), null, 2);
  } catch {
    return payload;
  }
}
