// Schedules: all of them, and one with its request.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { AskedDevices } from "../jobs/AskedDevices";
import { summaryOf } from "../requests/parts";
import { protocolName } from "../requests/words";
import { useScope } from "../session/query";
import { Refused } from "../ui/forms";
import { PagedTable } from "../ui/PagedTable";
import { Badge, Card, type Column, ConfirmButton, Facts, Page } from "../ui/parts";
import { Empty, Loaded, Scoped, type Tone } from "../ui/states";
import { Age, Time } from "../ui/Time";
import { durationOf } from "../ui/time";
import { askedBy, dueText } from "./newSchedule";
import { scheduleQuery, schedulesQuery, useChangeSchedule, useRemoveSchedule } from "./query";

type Schedule = Schemas["Schedule"];

const states: Record<Schedule["state"], [Tone, string]> = {
  ACTIVE: ["good", "Active"],
  PAUSED: ["warn", "Paused"],
  ENDED: ["calm", "Ended"],
};

function StateBadge({ state }: { state: Schedule["state"] }) {
  const [tone, label] = states[state];
  return <Badge tone={tone}>{label}</Badge>;
}

export function SchedulesPage(props: { page: number }) {
  return (
    <Page title="Schedules" lead="Requests that are created again and again.">
      <Scoped scope="actions:read">
        <PagedTable
          what="schedules"
          query={useQuery(schedulesQuery(props.page))}
          empty={
            <Empty title="There are no schedules.">
              Select <Link to="/devices">devices</Link>, begin a request to them, and put it on a
              schedule.
            </Empty>
          }
          caption="Schedules, newest first"
          keyOf={({ id }) => id}
          columns={scheduleColumns}
        />
      </Scoped>
    </Page>
  );
}

const scheduleColumns: Column<Schedule>[] = [
  {
    head: "Schedule",
    cell: ({ id, name }) => (
      <Link to="/schedules/$scheduleId" params={{ scheduleId: id }}>
        {name ?? id}
      </Link>
    ),
  },
  { head: "State", cell: ({ state }) => <StateBadge state={state} /> },
  { head: "Due", cell: dueText },
  { head: "Next", cell: ({ next }) => (next === undefined ? "—" : <Time at={next} />) },
  { head: "Last", cell: ({ last }) => (last === undefined ? "—" : <Age at={last.time} />) },
];

export function SchedulePage(props: { id: string }) {
  return (
    <Page title="Schedule" lead={<code className="small">{props.id}</code>}>
      <Scoped scope="actions:read">
        <Loaded what="schedule" query={useQuery(scheduleQuery(props.id))}>
          {(schedule) => (
            <div className="grid">
              <Times schedule={schedule} />
              <Request of={schedule.request} />
              <AskedDevices asked={askedBy(schedule.request)} />
            </div>
          )}
        </Loaded>
      </Scoped>
    </Page>
  );
}

const skipReasons: Record<string, string> = {
  NO_DEVICE: "no device matched",
  TOO_MANY_DEVICES: "more devices matched than a job may have",
  TOO_BROAD: "the filter matches too many devices to be examined",
  REQUESTS_OPEN: "every device still has an open request of the schedule",
};

function Times({ schedule }: { schedule: Schedule }) {
  const { last } = schedule;
  return (
    <Card title={schedule.name ?? "Times"} actions={<StateBadge state={schedule.state} />}>
      <Facts
        of={[
          ["Due", dueText(schedule)],
          ["Next", schedule.next && <Time key="" at={schedule.next} />],
          ["Last", last && <Time key="" at={last.time} />],
          [
            "Its job",
            last?.jobId && (
              <Link key="" to="/jobs/$jobId" params={{ jobId: last.jobId }}>
                {last.jobId}
              </Link>
            ),
          ],
          ["Nothing was created", last?.reason && (skipReasons[last.reason] ?? last.reason)],
          ["Begins", <Time key="" at={schedule.start} />],
          ["Ends", schedule.end && <Time key="" at={schedule.end} />],
          ["Created", <Time key="" at={schedule.created} />],
        ]}
      />
      <Acts schedule={schedule} />
    </Card>
  );
}

function Acts({ schedule: { id, state } }: { schedule: Schedule }) {
  const change = useChangeSchedule(id);
  const remove = useRemoveSchedule(id);
  const navigate = useNavigate();
  const mayWrite = useScope("actions:write");
  if (!mayWrite) return null;
  return (
    <>
      <div className="row">
        {state === "ACTIVE" && (
          <button type="button" disabled={change.isPending} onClick={() => change.mutate("PAUSED")}>
            Pause
          </button>
        )}
        {state === "PAUSED" && (
          <button
            type="button"
            className="primary"
            disabled={change.isPending}
            onClick={() => change.mutate("ACTIVE")}
          >
            Continue
          </button>
        )}
        <ConfirmButton
          label="Remove"
          title="Remove this schedule?"
          confirm="Remove the schedule"
          disabled={remove.isPending}
          act={() =>
            remove.mutate(undefined, { onSuccess: () => void navigate({ to: "/schedules" }) })
          }
        >
          <p>No further requests are created. Those that were created stay.</p>
        </ConfirmButton>
      </div>
      <Refused error={change.error ?? remove.error} />
    </>
  );
}

function Request({ of: request }: { of: Schemas["ScheduledRequest"] }) {
  const { requestMode, expiresIn } = request;
  return (
    <Card title="Request">
      <Facts
        of={[
          ["Request", summaryOf(request)],
          ["Protocol", protocolName(request.protocol)],
          ["Sent", requestMode === "SEND_WHEN_ACTIVE" ? "when the device is active" : "at once"],
          ["Expires after", expiresIn ? durationOf(expiresIn) : undefined],
        ]}
      />
    </Card>
  );
}
