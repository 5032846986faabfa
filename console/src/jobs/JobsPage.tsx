// Jobs: requests to all devices that matched a filter.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { deviceColumn } from "../devices/DeviceLink";
import { useScope } from "../session/query";
import { Refused } from "../ui/forms";
import { PagedTable } from "../ui/PagedTable";
import { Badge, Card, type Column, ConfirmButton, Facts, Page } from "../ui/parts";
import { Empty, Loaded, Scoped, type Tone } from "../ui/states";
import { Age, Time } from "../ui/Time";
import { jobDevicesQuery, jobQuery, jobsQuery, useCancelJob } from "./query";

type Job = Schemas["Job"];

const states: Record<Job["state"], [Tone, string]> = {
  RUNNING: ["busy", "Running"],
  DONE: ["good", "Done"],
  CANCELLED: ["calm", "Cancelled"],
};

function StateBadge({ state }: { state: Job["state"] }) {
  const [tone, label] = states[state];
  return <Badge tone={tone}>{label}</Badge>;
}

export function JobsPage(props: { page: number }) {
  return (
    <Page title="Jobs" lead="Requests to all devices that matched a filter.">
      <Scoped scope="actions:read">
        <PagedTable
          what="jobs"
          query={useQuery(jobsQuery(props.page))}
          empty={
            <Empty title="There are no jobs.">
              Narrow the list of <Link to="/devices">devices</Link>, and send a request to all that
              match.
            </Empty>
          }
          caption="Jobs, newest first"
          keyOf={({ id }) => id}
          columns={jobColumns}
        />
      </Scoped>
    </Page>
  );
}

const jobColumns: Column<Job>[] = [
  {
    head: "Created",
    cell: ({ id, created }) => (
      <Link to="/jobs/$jobId" params={{ jobId: id }}>
        <Age at={created} />
      </Link>
    ),
  },
  { head: "State", cell: ({ state }) => <StateBadge state={state} /> },
  { head: "Devices", cell: ({ matched }) => matched },
  { head: "Accepted", cell: ({ accepted }) => accepted },
  { head: "Refused", cell: ({ rejected }) => rejected },
];

export function JobPage(props: { id: string; page: number }) {
  return (
    <Page title="Job" lead={<code className="small">{props.id}</code>}>
      <Scoped scope="actions:read">
        <Loaded what="job" query={useQuery(jobQuery(props.id))}>
          {(job) => (
            <>
              <Progress job={job} />
              <Devices job={job} page={props.page} />
            </>
          )}
        </Loaded>
      </Scoped>
    </Page>
  );
}

function Progress({ job }: { job: Job }) {
  const cancel = useCancelJob();
  const mayWrite = useScope("actions:write");
  const done = job.accepted + job.rejected;
  return (
    <Card title="Progress">
      <progress max={Math.max(job.matched, 1)} value={done} aria-label="Devices that were asked" />
      <p role="status">
        {done} of {job.matched} devices: {job.accepted} accepted, {job.rejected} refused.
      </p>
      <Facts
        of={[
          ["State", <StateBadge key="" state={job.state} />],
          ["Created", <Time key="" at={job.created} />],
          [
            "Schedule",
            job.scheduleId && (
              <Link key="" to="/schedules/$scheduleId" params={{ scheduleId: job.scheduleId }}>
                {job.scheduleId}
              </Link>
            ),
          ],
        ]}
      />
      {mayWrite && job.state === "RUNNING" && (
        <ConfirmButton
          label="Cancel the rest"
          title="Cancel the rest of this job?"
          confirm="Cancel the rest"
          disabled={cancel.isPending}
          act={() => cancel.mutate(job.id)}
        >
          <p>No further device is asked. The requests that were created stay.</p>
        </ConfirmButton>
      )}
      <Refused error={cancel.error} />
    </Card>
  );
}

const outcomes: Record<Schemas["JobDevice"]["status"], [Tone, string]> = {
  PENDING: ["calm", "Pending"],
  ACCEPTED: ["good", "Accepted"],
  REJECTED: ["bad", "Refused"],
  CANCELLED: ["calm", "Cancelled"],
};

function Devices(props: { job: Job; page: number }) {
  const { id, state } = props.job;
  return (
    <Card title="Devices">
      <PagedTable
        what="devices"
        query={useQuery(jobDevicesQuery(id, props.page, state === "RUNNING"))}
        empty={<Empty title="No device matched." />}
        caption="What became of each device"
        keyOf={({ deviceId }) => deviceId}
        columns={[
          deviceColumn,
          {
            head: "Outcome",
            cell: ({ status }) => <Badge tone={outcomes[status][0]}>{outcomes[status][1]}</Badge>,
          },
          {
            head: "Request",
            cell: ({ requestId, message }) =>
              requestId === undefined ? (
                (message ?? "—")
              ) : (
                <Link to="/requests/$requestId" params={{ requestId }}>
                  {requestId}
                </Link>
              ),
          },
        ]}
      />
    </Card>
  );
}
