// Where events are delivered to, and how that goes.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { hasScope, useScope, useSession } from "../session/query";
import { Badge, Card, DataTable, Page } from "../ui/parts";
import { Empty, Loaded, Scoped, type Tone } from "../ui/states";
import { Age } from "../ui/Time";
import { type Destination, type KindName, type State, kinds } from "./kinds";
import { destinationsQuery } from "./query";

const states: Record<State, [Tone, string]> = {
  NEW: ["calm", "Nothing delivered yet"],
  ACTIVE: ["good", "Active"],
  FAILED: ["bad", "Failed"],
};

export function StateBadge({ destination }: { destination: Destination }) {
  const [tone, label] = states[destination.state];
  return (
    <span className="row tight">
      <Badge tone={tone}>{label}</Badge>
      {destination.replaying && <Badge tone="busy">Replaying</Badge>}
    </span>
  );
}

export function IntegrationsPage() {
  const session = useSession();
  const shown = (Object.keys(kinds) as KindName[]).filter((kind) =>
    hasScope(session, kinds[kind].read),
  );
  return (
    <Page title="Integrations">
      {shown.length === 0 && <Scoped scope="integrations:read">{null}</Scoped>}
      {shown.map((kind) => (
        <Card
          key={kind}
          title={kinds[kind].title}
          // A customer has one forwarder.
          actions={kind !== "sms" && <NewLink kind={kind} />}
        >
          <Destinations kind={kind} />
        </Card>
      ))}
    </Page>
  );
}

/** Leads those who may create a destination to its form. */
function NewLink({ kind }: { kind: KindName }) {
  if (!useScope(kinds[kind].write)) return null;
  return (
    <Link to="/integrations/$kind/new" params={{ kind }} aria-label={`New: ${kinds[kind].title}`}>
      New
    </Link>
  );
}

export function Destinations({ kind }: { kind: KindName }) {
  return (
    <Loaded what={kinds[kind].title} query={useQuery(destinationsQuery(kind))}>
      {({ items, pageAmount }) =>
        items.length === 0 ? (
          <Empty title="None yet.">{kind === "sms" && <NewLink kind={kind} />}</Empty>
        ) : (
          <>
            <DataTable
              caption={kinds[kind].title}
              rows={items}
              keyOf={(destination) => destination.id}
              columns={[
                {
                  head: "Name",
                  cell: ({ id, name }) => (
                    <Link to="/integrations/$kind/$id" params={{ kind, id }}>
                      {name}
                    </Link>
                  ),
                },
                { head: "Target", cell: ({ target }) => <span className="clip">{target}</span> },
                { head: "State", cell: (destination) => <StateBadge destination={destination} /> },
                { head: "Reason", cell: ({ failureReason }) => failureReason ?? "—" },
                { head: "Changed", cell: ({ updated }) => <Age at={updated} /> },
              ]}
            />
            {pageAmount > 1 && <p className="muted small">Only the first 100 are shown.</p>}
          </>
        )
      }
    </Loaded>
  );
}
