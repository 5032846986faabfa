// Creates a schedule of a request to the devices that were selected, or to all that match a filter.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { type AskedSearch, askedOf } from "../jobs/asked";
import { AskedDevices } from "../jobs/AskedDevices";
import { requestOf } from "../requests/newRequest";
import { RequestFields, useProtocol } from "../requests/RequestFields";
import { Choice, Field, Form } from "../ui/forms";
import { Card, Page } from "../ui/parts";
import { Scoped } from "../ui/states";
import { type Rhythm, rhythms, scheduleOf, units } from "./newSchedule";
import { useCreateSchedule } from "./query";

export function NewSchedulePage({ search }: { search: AskedSearch }) {
  return (
    <Page
      title="New schedule"
      lead="Whenever it is due, a job requests the same of all devices that match then."
    >
      <Scoped scope="actions:write">
        <AskedDevices asked={askedOf(search)} />
        <NewSchedule search={search} />
      </Scoped>
    </Page>
  );
}

function NewSchedule({ search }: { search: AskedSearch }) {
  const [protocol, choose] = useProtocol();
  const [rhythm, setRhythm] = useState<Rhythm>("daily");
  const create = useCreateSchedule();
  const navigate = useNavigate();
  return (
    <Card title="Times and request">
      <Form
        label="New schedule"
        submit="Create the schedule"
        isPending={create.isPending}
        error={create.error}
        act={(typed) =>
          create.mutate(scheduleOf(rhythm, typed, requestOf(protocol, typed), askedOf(search)), {
            onSuccess: (scheduleId) =>
              void navigate({ to: "/schedules/$scheduleId", params: { scheduleId } }),
          })
        }
      >
        <div className="fields">
          <Field label="Name" name="name" maxLength={128} />
          <Choice
            label="Due"
            options={rhythms}
            value={rhythm}
            onChange={(event) => setRhythm(event.target.value as Rhythm)}
          />
          {rhythm === "daily" ? <DailyFields /> : <IntervalFields />}
          <Field label="Begins" name="start" type="datetime-local" hint="by default now" />
          <Field label="Ends" name="end" type="datetime-local" hint="by default never" />
        </div>
        <RequestFields protocol={protocol} choose={choose} />
      </Form>
    </Card>
  );
}

function DailyFields() {
  return (
    <>
      <Field label="At" name="at" type="time" required />
      <Field
        label="Time zone"
        name="zone"
        required
        defaultValue={Intl.DateTimeFormat().resolvedOptions().timeZone}
        hint="such as Europe/Berlin"
      />
    </>
  );
}

function IntervalFields() {
  return (
    <>
      <Field label="Every" name="every" type="number" min={1} required />
      <Choice label="Unit" name="unit" options={units} defaultValue="3600" />
    </>
  );
}
