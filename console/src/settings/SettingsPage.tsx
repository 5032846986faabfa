// The settings of a customer: passive reporting, and the objects that it defines.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import type { Schemas } from "../api/client";
import { BootstrapConfiguration } from "../bootstrap/BootstrapConfiguration";
import { definitionsQuery } from "../devices/query";
import { useScope, useSession } from "../session/query";
import { WakeUp } from "../sms/WakeUp";
import { Field, Form, Refused } from "../ui/forms";
import { Badge, Card, type Column, ConfirmButton, DataTable, Facts, Page } from "../ui/parts";
import { Empty, Loaded, Notice, Scoped } from "../ui/states";
import { Age } from "../ui/Time";
import { durationOf } from "../ui/time";
import {
  presenceQuery,
  settingsQuery,
  useChangeSetting,
  useDefine,
  useRemoveDefinition,
  useSetSilence,
} from "./query";

export function SettingsPage() {
  return (
    <Page title="Settings">
      <Access />
      <Scoped scope="settings:read">
        <Settings />
        <Silence />
        <Definitions />
      </Scoped>
      {useScope("devices:read") && <BootstrapConfiguration />}
      {useScope("sms:read") && <WakeUp />}
    </Page>
  );
}

function Access() {
  const { clientId, person, customerId, scopes } = useSession();
  return (
    <Card title="Your access">
      <Facts
        of={[
          ["Customer", customerId],
          person === undefined ? ["API client", clientId] : ["Person", person],
          ["Scopes", scopes.join(" ")],
        ]}
      />
    </Card>
  );
}

type Setting = Schemas["Setting"];

const settings: Record<Setting["name"], { title: string; lead: string; change: string }> = {
  LWM2M_PASSIVE_REPORTING: {
    title: "Passive reporting",
    lead: "A device is read whenever it registers or updates its registration: all readable objects but 0, 1, 2, 3 and 21.",
    change: "This is about every device of yours, from its next registration or update on.",
  },
};

function Settings() {
  const { platform } = useSession();
  return (
    <Loaded what="settings" query={useQuery(settingsQuery(platform))}>
      {({ items }) => items.map((setting) => <OneSetting key={setting.name} setting={setting} />)}
    </Loaded>
  );
}

function OneSetting({ setting }: { setting: Setting }) {
  const { platform } = useSession();
  const change = useChangeSetting(platform);
  const mayWrite = useScope("settings:write");
  const isEnabled = setting.state === "ENABLED";
  const { title, lead, change: effect } = settings[setting.name];
  const verb = isEnabled ? "Disable" : "Enable";
  return (
    <Card title={title}>
      <p>{lead}</p>
      <div className="row" role="status">
        <Badge tone={isEnabled ? "good" : "calm"}>{isEnabled ? "Enabled" : "Disabled"}</Badge>
        <code className="muted small">{setting.name}</code>
      </div>
      {mayWrite && (
        <ConfirmButton
          look="primary"
          label={verb}
          title={`${verb} ${title.toLowerCase()}?`}
          confirm={verb}
          disabled={change.isPending}
          act={() =>
            change.mutate({ name: setting.name, state: isEnabled ? "DISABLED" : "ENABLED" })
          }
        >
          <p>{effect}</p>
        </ConfirmButton>
      )}
      <Refused error={change.error} />
    </Card>
  );
}

function Silence() {
  const query = useQuery(presenceQuery);
  const set = useSetSilence();
  const mayWrite = useScope("settings:write");
  return (
    <Card title="Silent devices">
      <p>
        A device is offline once it was silent for so long, unless it has a time of its own. Without
        either, once it was silent for the lifetime of its registration.
      </p>
      <Loaded what="setting" query={query}>
        {({ offlineAfter }) =>
          mayWrite ? (
            <Form
              label="Silent devices"
              submit="Save"
              done={set.isSuccess && "Saved."}
              isPending={set.isPending}
              error={set.error}
              act={(typed) => {
                const seconds = typed("offlineAfter");
                set.mutate(seconds === undefined ? null : Number(seconds));
              }}
            >
              <Field
                label="Offline after, in seconds"
                name="offlineAfter"
                type="number"
                min={1}
                max={31_536_000}
                defaultValue={offlineAfter ?? undefined}
              />
            </Form>
          ) : (
            <p>{offlineAfter === null ? "No time is set." : durationOf(offlineAfter)}</p>
          )
        }
      </Loaded>
    </Card>
  );
}

type Definition = Schemas["ObjectDefinition"];

const columns: Column<Definition>[] = [
  { head: "Object", cell: ({ objectId }) => objectId },
  { head: "Version", cell: ({ version }) => version },
  { head: "Name", cell: ({ name }) => name ?? "—" },
  { head: "Resources", cell: ({ resourceCount }) => resourceCount ?? "—" },
  { head: "Changed", cell: ({ updated }) => <Age at={updated} /> },
];

const removeColumn: Column<Definition> = {
  head: "Remove",
  cell: (definition) => <RemoveButton definition={definition} />,
};

function Definitions() {
  const mayWrite = useScope("settings:write");
  return (
    <Card title="Object definitions">
      <p>
        Objects of your own, beside those of the registry: their names, types and operations, for
        the values and the views of your devices.
      </p>
      <Loaded what="definitions" query={useQuery(definitionsQuery)}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="You have not defined any object." />
          ) : (
            <DataTable
              caption="Object definitions"
              rows={items}
              keyOf={({ objectId, version }) => `${objectId} ${version}`}
              columns={mayWrite ? [...columns, removeColumn] : columns}
            />
          )
        }
      </Loaded>
      {mayWrite && <Upload />}
    </Card>
  );
}

function RemoveButton({ definition }: { definition: Definition }) {
  const remove = useRemoveDefinition();
  const { objectId, version } = definition;
  return (
    <>
      <ConfirmButton
        label="Remove"
        title={`Remove the definition of object ${objectId}, version ${version}?`}
        confirm="Remove it"
        disabled={remove.isPending}
        act={() => remove.mutate(definition)}
      >
        <p>
          Values of the object are shown without names and written as text, unless the registry has
          the object.
        </p>
      </ConfirmButton>
      <Refused error={remove.error} />
    </>
  );
}

function Upload() {
  const define = useDefine();
  const [file, setFile] = useState<File>();
  return (
    <form
      className="stack"
      aria-label="Upload"
      onSubmit={(event) => {
        event.preventDefault();
        if (file !== undefined) define.mutate(file);
      }}
    >
      <Field
        label="Definition"
        type="file"
        accept=".xml"
        required
        hint="an XML file of the form of the OMA registry; it replaces the one of the same object and version"
        onChange={(event) => setFile(event.target.files?.[0])}
      />
      <Refused error={define.error} />
      <div aria-live="polite">
        {define.data !== undefined && (
          <Notice tone="good">
            Object {define.data.objectId}, version {define.data.version}, is defined.
          </Notice>
        )}
      </div>
      <div className="row">
        <button type="submit" disabled={define.isPending}>
          Upload
        </button>
      </div>
    </form>
  );
}
