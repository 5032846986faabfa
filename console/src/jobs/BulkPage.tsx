// Asks many devices for the same: those that were selected, or all that match a filter.
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import type { Schemas } from "../api/client";
import { deviceColumn } from "../devices/DeviceLink";
import { type NewRequest, requestOf } from "../requests/newRequest";
import { summaryOf } from "../requests/parts";
import { RequestFields, useProtocol } from "../requests/RequestFields";
import { Form, Refused } from "../ui/forms";
import { Card, ConfirmButton, DataTable, Page } from "../ui/parts";
import { Empty, Scoped } from "../ui/states";
import { type Asked, type AskedSearch, askedOf } from "./asked";
import { AskedDevices } from "./AskedDevices";
import { useAskMany, useDryRun } from "./query";

export function BulkPage({ search }: { search: AskedSearch }) {
  const asked = askedOf(search);
  return (
    <Page
      title="Request to many devices"
      actions={
        <Link to="/new-schedule" search={search}>
          On a schedule
        </Link>
      }
    >
      <Scoped scope="actions:write">
        <AskedDevices asked={asked} />
        <Bulk key={JSON.stringify(asked)} asked={asked} />
      </Scoped>
    </Page>
  );
}

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
