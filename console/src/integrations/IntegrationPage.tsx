// One destination: how it is, what waits for it, and what it did not take.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { deviceColumn } from "../devices/DeviceLink";
import { useScope } from "../session/query";
import { Form, Refused } from "../ui/forms";
import { LoadMore } from "../ui/LoadMore";
import { Card, ConfirmButton, DataTable, Facts, Page } from "../ui/parts";
import { Empty, Loaded, Notice, Scoped } from "../ui/states";
import { Age, Time } from "../ui/Time";
import { wordsOf } from "../ui/words";
import { StateBadge } from "./IntegrationsPage";
import { type Destination, type KindName, isKind, kinds } from "./kinds";
import { DestinationFields } from "./DestinationFields";
import { destinationQuery, lettersQuery, useAct, useChange, useRemove } from "./query";
import { wantedText } from "./wantedEvents";

export function IntegrationPage(props: { kind: string; id: string }) {
  if (!isKind(props.kind)) {
    return (
      <Page title="Integration">
        <Empty title="There is no such integration." />
      </Page>
    );
  }
  return (
    <Page title="Integration" lead={<code className="small">{props.id}</code>}>
      <Scoped scope={kinds[props.kind].read}>
        <Integration kind={props.kind} id={props.id} />
      </Scoped>
    </Page>
  );
}

function Integration({ kind, id }: { kind: KindName; id: string }) {
  return (
    <Loaded what="integration" query={useQuery(destinationQuery(kind, id))}>
      {(destination) => (
        <div className="grid">
          <State destination={destination} />
          <Letters destination={destination} />
        </div>
      )}
    </Loaded>
  );
}

function State({ destination }: { destination: Destination }) {
  const { kind, id, backlog } = destination;
  const act = useAct(kind, id);
  const mayWrite = useScope(kinds[kind].write);
  return (
    <Card title={destination.name}>
      {destination.failureReason !== undefined && (
        <Notice tone="bad">
          <p className="strong">The last attempt failed: {destination.failureReason}.</p>
          {destination.state === "FAILED" && (
            <p>
              New events become dead letters until it is restarted. Mend the endpoint, test it,
              restart, and replay the dead letters.
            </p>
          )}
        </Notice>
      )}
      <Facts
        of={[
          ["State", <StateBadge key="" destination={destination} />],
          ["Target", destination.target],
          ["Events", wantedText(destination.eventTypes)],
          ["Waiting", backlog?.waiting],
          ["Dead letters", backlog?.deadLetters],
          ["Created", <Time key="" at={destination.created} />],
          ["Changed", <Time key="" at={destination.updated} />],
        ]}
      />
      {mayWrite && (
        <div className="row">
          {kinds[kind].test !== undefined && (
            <button type="button" disabled={act.isPending} onClick={() => act.mutate("test")}>
              Send a test event
            </button>
          )}
          {kinds[kind].restart !== undefined && destination.state === "FAILED" && (
            <button
              type="button"
              className="primary"
              disabled={act.isPending}
              onClick={() => act.mutate("restart")}
            >
              Restart
            </button>
          )}
        </div>
      )}
      <ActResult act={act} />
      {mayWrite && kinds[kind].change !== undefined && <Change destination={destination} />}
      {mayWrite && <RemoveButton destination={destination} />}
    </Card>
  );
}

function Change({ destination }: { destination: Destination }) {
  const { kind, id, name } = destination;
  const change = useChange(kind, id);
  // What is changed meanwhile is not what the fields began with.
  const [was] = useState(destination);
  return (
    <details>
      <summary>Change</summary>
      <Form
        label={`Change ${name}`}
        submit="Save"
        done={change.isSuccess && "Saved."}
        isPending={change.isPending}
        error={change.error}
        act={(typed) => change.mutate(typed)}
      >
        <DestinationFields kind={kind} of={was} />
      </Form>
    </details>
  );
}

function RemoveButton({ destination }: { destination: Destination }) {
  const { kind, id, name } = destination;
  const remove = useRemove(kind);
  const navigate = useNavigate();
  const what = kind === "plugins" ? "Uninstall" : "Remove";
  return (
    <>
      <ConfirmButton
        label={what}
        title={`${what} ${name}?`}
        confirm={what}
        disabled={remove.isPending}
        act={() => remove.mutate(id, { onSuccess: () => void navigate({ to: "/integrations" }) })}
      >
        <p>Deliveries end; what waits for it and its dead letters are deleted.</p>
      </ConfirmButton>
      <Refused error={remove.error} />
    </>
  );
}

function ActResult({ act }: { act: ReturnType<typeof useAct> }) {
  return (
    <div aria-live="polite">
      {act.isPending && <p className="muted">Waiting for the service…</p>}
      {act.error !== null && <Notice tone="bad">{act.error.message}</Notice>}
      {act.data !== undefined && <Notice tone="calm">{act.data}</Notice>}
    </div>
  );
}

function Letters({ destination }: { destination: Destination }) {
  const { kind, id, backlog } = destination;
  const query = useInfiniteQuery(lettersQuery(kind, id));
  const act = useAct(kind, id);
  const mayWrite = useScope(kinds[kind].write);
  const count = backlog?.deadLetters ?? 0;
  return (
    <Card title={`Dead letters (${count})`}>
      {mayWrite && count > 0 && (
        <div className="row">
          <button
            type="button"
            disabled={act.isPending || destination.replaying || destination.state === "FAILED"}
            onClick={() => act.mutate("replay")}
          >
            Replay all
          </button>
          <ConfirmButton
            label="Discard all"
            title={`Discard ${count} dead letters?`}
            confirm="Discard them"
            disabled={act.isPending}
            act={() => act.mutate("discardAll")}
          >
            <p>{destination.name} will never receive these events. This cannot be undone.</p>
          </ConfirmButton>
        </div>
      )}
      <ActResult act={act} />
      <Loaded what="dead letters" query={query}>
        {({ pages }) => {
          const letters = pages.flatMap((page) => page.items);
          if (letters.length === 0) return <Empty title="Everything was accepted." />;
          return (
            <DataTable
              caption="Dead letters"
              rows={letters}
              keyOf={(letter) => letter.id}
              columns={[
                { head: "Event", cell: ({ type }) => wordsOf(type) },
                deviceColumn,
                { head: "Reason", cell: ({ reason }) => reason },
                { head: "Tries", cell: ({ tries }) => tries },
                { head: "Given up", cell: ({ time }) => <Age at={time} /> },
              ]}
            />
          );
        }}
      </Loaded>
      <LoadMore label="Load more" query={query} />
    </Card>
  );
}
