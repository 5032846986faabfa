// How requests are shown wherever there are some: their status, what they ask for, their outcome.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { useScope } from "../session/query";
import { Refused } from "../ui/forms";
import { Badge, ConfirmButton } from "../ui/parts";
import { Loaded, type Tone } from "../ui/states";
import type { NewRequest } from "./newRequest";
import { requestQuery, useCancelRequest } from "./query";
import { type Status, statuses } from "./words";

const tones: Record<Status, Tone> = {
  SCHEDULED: "calm",
  IN_PROGRESS: "busy",
  SUCCEEDED: "good",
  FAILED: "bad",
  CANCELLED: "calm",
};

export function StatusBadge(props: { status: Status }) {
  const label = statuses.find(([status]) => status === props.status)?.[1];
  return <Badge tone={tones[props.status]}>{label}</Badge>;
}

/** What a request asks its device for, in a few words. */
export function summaryOf(
  data: Schemas["ActionRequest"]["requestData"] | NewRequest["body"],
): string {
  if ("action" in data) {
    const paths = "resourceAddresses" in data ? data.resourceAddresses.join(" ") : undefined;
    const path = "resourceAddress" in data ? data.resourceAddress : paths;
    const value = "data" in data && typeof data.data === "string" ? ` = ${data.data}` : "";
    return `${data.action} ${path ?? ""}${value}`;
  }
  if ("requestType" in data) return `${data.requestType} ${data.path}`;
  return `datagram to port ${String(data.port)}`;
}

const reasons: Record<NonNullable<Schemas["PendingActionRequest"]["waitsFor"]>, string> = {
  ASLEEP: "the device to wake up",
  UNREGISTERED: "the device to register",
  UPLINK: "the next message of the device",
  NOT_BEFORE: "its time",
  REQUEST: "an earlier request",
  PASSIVE_REPORTING: "a read for passive reporting",
  OBSERVATION: "an observation that is renewed",
  NOTIFICATION: "the rest of a notification",
  BOOTSTRAP: "the bootstrap of the device",
  FIRMWARE_UPDATE: "a request of its firmware update",
};

export function reasonOf(waitsFor: Schemas["PendingActionRequest"]["waitsFor"]): string {
  return waitsFor === undefined ? "nothing: it is under way" : reasons[waitsFor];
}

/** Cancels a request, for those who may. */
export function CancelButton(props: { request: Schemas["ActionRequest"] }) {
  const cancel = useCancelRequest();
  const mayWrite = useScope("actions:write");
  if (!mayWrite || props.request.status !== "SCHEDULED") return null;
  return (
    <>
      <ConfirmButton
        label="Cancel"
        title="Cancel this request?"
        confirm="Cancel the request"
        disabled={cancel.isPending}
        act={() => cancel.mutate(props.request.id)}
      >
        <p>
          {summaryOf(props.request.requestData)} will not be sent to {props.request.deviceId}.
        </p>
      </ConfirmButton>
      <Refused error={cancel.error} />
    </>
  );
}

/** What became of a request; it follows the request until that is final. */
export function Outcome(props: { id: string }) {
  return (
    <div className="outcome" aria-live="polite">
      <Loaded what="request" query={useQuery(requestQuery(props.id))}>
        {(request) => (
          <>
            <StatusBadge status={request.status} />{" "}
            <Link to="/requests/$requestId" params={{ requestId: request.id }}>
              {summaryOf(request.requestData)}
            </Link>
            <ResultText request={request} />
            <CancelButton request={request} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function ResultText(props: { request: Schemas["FollowedActionRequest"] }) {
  const { status, resultData, mode } = props.request;
  if (status === "SCHEDULED") {
    return (
      <span className="muted">
        {mode === "SEND_WHEN_ACTIVE" ? " waits for the device" : " waits to be sent"}
      </span>
    );
  }
  if (resultData?.errorMessage !== undefined) return <span> {resultData.errorMessage}</span>;
  if (resultData?.payload !== undefined)
    return <code className="answer">{resultData.payload}</code>;
  return null;
}
