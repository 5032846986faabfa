// Creates a destination of some kind.
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { Check, Choice, Field, Form } from "../ui/forms";
import { Card, Page } from "../ui/parts";
import { Empty, Notice, Scoped } from "../ui/states";
import { type KindName, eventTypes, isKind, kinds } from "./kinds";
import { useCreate } from "./query";

export function NewIntegrationPage({ kind }: { kind: string }) {
  if (!isKind(kind)) {
    return (
      <Page title="New integration">
        <Empty title="There is no such kind of integration." />
      </Page>
    );
  }
  return (
    <Page title="New integration">
      <Scoped scope={kinds[kind].write}>
        <NewIntegration kind={kind} />
      </Scoped>
    </Page>
  );
}

function NewIntegration({ kind }: { kind: KindName }) {
  const create = useCreate(kind);
  const navigate = useNavigate();
  const { lead, submit, fields } = forms[kind];
  return (
    <Card title={kinds[kind].title}>
      {lead}
      <Form
        label={kinds[kind].title}
        submit={submit}
        isPending={create.isPending}
        error={create.error}
        act={(typed) =>
          create.mutate(typed, {
            onSuccess: (id) =>
              void navigate({ to: "/integrations/$kind/$id", params: { kind, id } }),
          })
        }
      >
        {fields}
      </Form>
    </Card>
  );
}

const partners = [
  ["gateway", "Gateway"],
  ["dashboard", "Dashboard"],
] as const;

const versions = [
  ["5", "MQTT 5"],
  ["3", "MQTT 3.1.1"],
] as const;

/** What each kind asks for. */
const forms: Record<KindName, { lead: ReactNode; submit: string; fields: ReactNode }> = {
  webhooks: {
    lead: <p className="muted">Events are posted to a URL of yours.</p>,
    submit: "Create the webhook",
    fields: (
      <>
        <Field label="Name" name="name" required maxLength={128} />
        <Field
          label="URL"
          name="url"
          type="url"
          required
          maxLength={2048}
          placeholder="https://example.com/events"
          hint=":deviceId:, :iccid:, :imsi: and :ip: are replaced by those of the device"
        />
        <Field
          label="Signing secret"
          name="secret"
          type="password"
          autoComplete="new-password"
          hint="24 to 64 bytes in base64; without one the requests are not signed"
        />
        <EventFields />
      </>
    ),
  },
  mqtt: {
    lead: <p className="muted">Events are published to a broker of yours.</p>,
    submit: "Create the integration",
    fields: (
      <>
        <Field label="Name" name="name" required maxLength={128} />
        <Field label="URL" name="url" required placeholder="mqtts://broker.example.com" />
        <Field label="Topic prefix" name="topicPrefix" required maxLength={200} />
        <Choice label="Version" name="version" options={versions} />
        <Field label="User name" name="username" />
        <Field label="Password" name="password" type="password" autoComplete="new-password" />
        <EventFields />
        <Check label="Take commands from the broker" name="commands" />
      </>
    ),
  },
  plugins: {
    lead: (
      <Notice tone="warn">
        A plugin shares the data of all your devices with a third party, whether or not a device is
        set up there.
      </Notice>
    ),
    submit: "Install the plugin",
    fields: (
      <>
        <Choice label="Partner" name="partner" options={partners} />
        <Field
          label="Server"
          name="serverDomain"
          required
          placeholder="gateway.example.com"
          hint="a host, with a port if it is not 443"
        />
        <Field
          label="Webhook key"
          name="webhookKey"
          type="password"
          autoComplete="new-password"
          required
          maxLength={512}
          hint="the webhook secret that the third party gave you; it is never shown again"
        />
      </>
    ),
  },
  sms: {
    lead: (
      <p className="muted">
        SMS of your devices are posted, and delivery reports patched, to a URL of yours. A customer
        has one forwarder: another URL takes the place of the one before.
      </p>
    ),
    submit: "Save",
    fields: <ForwarderFields />,
  },
};

export function ForwarderFields({ url }: { url?: string }) {
  return (
    <Field
      label="URL"
      name="url"
      type="url"
      required
      defaultValue={url}
      placeholder="https://example.com/sms/"
      hint="the requests carry no authentication: use a path that nobody guesses"
    />
  );
}

function EventFields() {
  return (
    <>
      <fieldset className="choices">
        <legend className="small strong">Events</legend>
        {eventTypes.map(([type, label]) => (
          <Check key={type} label={label} name={type} defaultChecked={type !== "ACTION_RESULT"} />
        ))}
      </fieldset>
      <Check label="Embed data that is JSON as JSON" name="json" />
    </>
  );
}
