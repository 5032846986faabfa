// Asks many devices for the same: those that were selected, or all that match a filter.
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import type { Schemas } from "../api/client";
import { deviceColumn } from "../devices/DeviceLink";
import { type DeviceSearch, filterOf } from "../devices/query";
import { type NewRequest, requestOf } from "../requests/newRequest";
import { summaryOf } from "../requests/parts";
import { RequestFields, useProtocol } from "../requests/RequestFields";
import { Form, Refused } from "../ui/forms";
import { Card, ConfirmButton, DataTable, Facts, Page } from "../ui/parts";
import { Empty, Notice, Scoped } from "../ui/states";
import { type Asked, useAskMany, useDryRun } from "./query";

/** Which devices a view asks: those of `ids`, or those that match the rest. */
export interface BulkSearch extends DeviceSearch {
  ids?: string;
}

export function BulkPage({ search }: { search: BulkSearch }) {
  const { ids, ...filter } = search;
  const asked: Asked =
    ids === undefined
      ? { filter: filterOf(filter) }
      : { deviceIds: ids.split(",").filter(Boolean) };
  return (
    <Page title="Request to many devices">
      <Scoped scope="actions:write">
        <Devices asked={asked} />
        <Bulk key={JSON.stringify(asked)} asked={asked} />
      </Scoped>
    </Page>
  );
}

function Devices({ asked }: { asked: Asked }) {
  if ("deviceIds" in asked) {
    return (
      <Card title={`Selected devices (${asked.deviceIds.length})`}>
        <p className="ids">{asked.deviceIds.join(", ")}</p>
      </Card>
    );
  }
  const conditions = Object.entries(asked.filter).map(([name, value]): [string, string] => [
    conditionNames[name as keyof Schemas["DeviceFilter"]],
    String(value),
  ]);
  return (
    <Card title="All devices that match">
      {conditions.length === 0 ? (
        <Notice tone="warn">There is no condition: every device matches.</Notice>
      ) : (
        <Facts of={conditions} />
      )}
    </Card>
  );
}

const conditionNames: Record<keyof Schemas["DeviceFilter"], string> = {
  q: "Begins with",
  registered: "Registered",
  protocol: "Protocol",
  tag: "Tag",
  version: "LwM2M version",
  object: "Has object",
  firmware: "Firmware",
  lastSeenBefore: "Not seen since",
  lastSeenAfter: "Seen since",
};

function Bulk({ asked }: { asked: Asked }) {
  const [protocol, choose] = useProtocol();
  const [request, setRequest] = useState<NewRequest>();
  const dryRun = useDryRun();
  const ask = useAskMany();
  const navigate = useNavigate();
  const preview = (draft: NewRequest) => {
    ask.reset();
    setRequest(draft);
    if ("filter" in asked) dryRun.mutate({ request: draft, filter: asked.filter });
  };
  const create = (draft: NewRequest) =>
    ask.mutate(
      { request: draft, asked },
      {
        onSuccess: (result) => {
          if (!("jobId" in result)) return;
          void navigate({ to: "/jobs/$jobId", params: { jobId: result.jobId } });
        },
      },
    );
  const matched = "deviceIds" in asked ? asked.deviceIds.length : dryRun.data?.matched;
  return (
    <>
      <Card title="Request">
        <Form
          label="Request"
          submit="Preview"
          isPending={dryRun.isPending}
          error={dryRun.error}
          act={(typed) => preview(requestOf(protocol, typed))}
        >
          <RequestFields protocol={protocol} choose={choose} />
        </Form>
      </Card>
      <div aria-live="polite" className="stack">
        {request !== undefined && matched !== undefined && ask.data === undefined && (
          <Preview
            request={request}
            matched={matched}
            examples={"filter" in asked ? (dryRun.data?.examples ?? []) : []}
            isPending={ask.isPending || dryRun.isPending}
            create={() => create(request)}
          />
        )}
        <Refused error={ask.error} />
        {ask.data !== undefined && "acceptedRequests" in ask.data && <Report of={ask.data} />}
      </div>
    </>
  );
}

function Preview(props: {
  request: NewRequest;
  matched: number;
  examples: string[];
  isPending: boolean;
  create: () => void;
}) {
  const { matched, examples } = props;
  const devices = `${matched} ${matched === 1 ? "device" : "devices"}`;
  const summary = summaryOf(props.request.body);
  if (matched === 0) return <Empty title="No device matches: nothing would be created." />;
  return (
    <Card title="Preview">
      <p>
        <strong>{summary}</strong> would be asked of <strong>{devices}</strong>. Nothing was created
        yet.
      </p>
      {examples.length > 0 && (
        <p className="muted">
          {matched > examples.length ? "Among them: " : "These are: "}
          {examples.join(", ")}
        </p>
      )}
      <ConfirmButton
        look="primary"
        label={`Create requests to ${devices}`}
        title={`Create requests to ${devices}?`}
        confirm="Create them"
        disabled={props.isPending}
        act={props.create}
      >
        <p>
          Each device is asked for {summary}. What was not sent yet can be cancelled; what was sent
          cannot.
        </p>
      </ConfirmButton>
    </Card>
  );
}

function Report({ of: report }: { of: Schemas["ActionsAccepted"] }) {
  const accepted = report.acceptedRequests.length;
  const refused = report.rejectedReasons;
  return (
    <Card title={`${accepted} accepted, ${refused.length} refused`}>
      {accepted > 0 && (
        <DataTable
          caption="Devices that have a request"
          rows={report.acceptedRequests}
          keyOf={({ deviceId }) => deviceId}
          columns={[
            deviceColumn,
            {
              head: "Request",
              cell: ({ requestId }) => (
                <Link to="/requests/$requestId" params={{ requestId }}>
                  {requestId}
                </Link>
              ),
            },
          ]}
        />
      )}
      {refused.length > 0 && (
        <DataTable
          caption="Devices that have none"
          rows={refused}
          keyOf={({ deviceId }) => deviceId}
          columns={[
            deviceColumn,
            { head: "Refused", cell: ({ message }) => message },
            { head: "Code", cell: ({ code }) => <code>{code}</code> },
          ]}
        />
      )}
    </Card>
  );
}
