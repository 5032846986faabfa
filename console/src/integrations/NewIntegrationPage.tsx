// Creates a destination of some kind.
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { Form } from "../ui/forms";
import { Card, Page } from "../ui/parts";
import { Empty, Notice, Scoped } from "../ui/states";
import { DestinationFields } from "./DestinationFields";
import { type KindName, isKind, kinds } from "./kinds";
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
  const { lead, submit } = forms[kind];
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
        <DestinationFields kind={kind} />
      </Form>
    </Card>
  );
}

/** What creating one of a kind is called, and what is said before it. */
const forms: Record<KindName, { lead: ReactNode; submit: string }> = {
  webhooks: {
    lead: <p className="muted">Events are posted to a URL of yours.</p>,
    submit: "Create the webhook",
  },
  mqtt: {
    lead: <p className="muted">Events are published to a broker of yours.</p>,
    submit: "Create the integration",
  },
  plugins: {
    lead: (
      <Notice tone="warn">
        A plugin shares the data of all your devices with a third party, whether or not a device is
        set up there.
      </Notice>
    ),
    submit: "Install the plugin",
  },
  sms: {
    lead: (
      <p className="muted">
        SMS of your devices are posted, and delivery reports patched, to a URL of yours. A customer
        has one forwarder: another URL takes the place of the one before.
      </p>
    ),
    submit: "Save",
  },
};
