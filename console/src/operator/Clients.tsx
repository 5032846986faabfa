// The API clients of a customer or of the network: their scopes and their secrets.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Check, Field, Form, Refused, ShownOnce } from "../ui/forms";
import { Card, ConfirmButton, DataTable } from "../ui/parts";
import { Empty, Loaded } from "../ui/states";
import { Time } from "../ui/Time";
import {
  type AnyClient,
  type Owner,
  clientsQuery,
  useAddSecret,
  useCreateClient,
  useRemoveClient,
  useRemoveSecret,
} from "./query";

/** The scopes that can be given one by one. */
const scopes = [
  "devices:read",
  "devices:write",
  "actions:read",
  "actions:write",
  "logs:read",
  "sms:read",
  "sms:write",
  "integrations:read",
  "integrations:write",
  "plugins:read",
  "plugins:write",
  "settings:read",
  "settings:write",
] as const;

export function Clients({ owner }: { owner: Owner }) {
  return (
    <Card title="API clients">
      <Loaded what="API clients" query={useQuery(clientsQuery(owner))}>
        {(clients) =>
          clients.length === 0 ? (
            <Empty title="There are no API clients yet." />
          ) : (
            <DataTable
              caption="API clients"
              rows={clients}
              keyOf={({ clientId }) => clientId}
              columns={[
                { head: "Name", cell: ({ name }) => name },
                { head: "Client id", cell: ({ clientId }) => <code>{clientId}</code> },
                { head: "Scopes", cell: ({ scopes: given }) => given.join(" ") },
                { head: "Secrets", cell: (client) => <Secrets owner={owner} client={client} /> },
                { head: "Remove", cell: (client) => <Removal owner={owner} client={client} /> },
              ]}
            />
          )
        }
      </Loaded>
      <details>
        <summary>New API client</summary>
        <NewClient owner={owner} />
      </details>
    </Card>
  );
}

/** A client may have two, so that they can be changed without a gap. */
const secretsMax = 2;

function Secrets({ owner, client }: { owner: Owner; client: AnyClient }) {
  const add = useAddSecret(owner);
  const remove = useRemoveSecret(owner);
  return (
    <div className="stack">
      {client.secrets.map((secret) => (
        <div key={secret.secretId} className="row tight">
          <span>
            since <Time at={secret.created} />
            {secret.expires !== null && (
              <>
                , until <Time at={secret.expires} />
              </>
            )}
          </span>
          {client.secrets.length > 1 && (
            <ConfirmButton
              label="Remove"
              title="Remove this secret?"
              confirm="Remove it"
              disabled={remove.isPending}
              act={() => remove.mutate({ client: client.clientId, secret: secret.secretId })}
            >
              <p>Programs that use it get no further token.</p>
            </ConfirmButton>
          )}
        </div>
      ))}
      {add.data !== undefined && (
        <ShownOnce of={[[`Secret of ${client.name}`, add.data.clientSecret]]} />
      )}
      {client.secrets.length < secretsMax && (
        <button
          type="button"
          disabled={add.isPending}
          aria-label={`Add a second secret to ${client.name}`}
          onClick={() => add.mutate(client.clientId)}
        >
          Add a second secret
        </button>
      )}
      <Refused error={add.error ?? remove.error} />
    </div>
  );
}

function Removal({ owner, client }: { owner: Owner; client: AnyClient }) {
  const remove = useRemoveClient(owner);
  return (
    <>
      <ConfirmButton
        label="Remove"
        title={`Remove the API client ${client.name}?`}
        confirm="Remove it"
        disabled={remove.isPending}
        act={() => remove.mutate(client.clientId)}
      >
        <p>Its tokens and sessions end at once.</p>
      </ConfirmButton>
      <Refused error={remove.error} />
    </>
  );
}

function NewClient({ owner }: { owner: Owner }) {
  const create = useCreateClient(owner);
  const [hasAll, setAll] = useState(true);
  return (
    <Form
      label="New API client"
      submit="Create the API client"
      isPending={create.isPending}
      error={create.error}
      act={(typed, form) => {
        const given = hasAll ? [] : scopes.filter((scope) => typed(scope) !== undefined);
        const body = { name: typed("name") ?? "", ...(hasAll ? {} : { scopes: [...given] }) };
        create.mutate(body, { onSuccess: () => form.reset() });
      }}
    >
      <Field label="Name" name="name" required maxLength={128} />
      {owner !== "network" && (
        <fieldset className="choices">
          <legend className="small strong">Scopes</legend>
          <Check label="all" checked={hasAll} onChange={(event) => setAll(event.target.checked)} />
          {!hasAll && scopes.map((scope) => <Check key={scope} label={scope} name={scope} />)}
        </fieldset>
      )}
      {create.data !== undefined && (
        <ShownOnce
          of={[
            ["Client id", create.data.clientId],
            ["Client secret", create.data.clientSecret],
          ]}
        />
      )}
    </Form>
  );
}
