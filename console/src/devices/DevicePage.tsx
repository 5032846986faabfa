// One device: who it is and how it is. Its tabs are views of their own.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { Schemas } from "../api/client";
import { LastBootstrap } from "../bootstrap/LastBootstrap";
import { useDeviceEvents } from "../live/events";
import { StatusBadge, reasonOf, summaryOf } from "../requests/parts";
import { cancelColumn } from "../requests/RequestsPage";
import { useCancelAll } from "../requests/query";
import { type Scope, hasScope, useScope, useSession } from "../session/query";
import { Refused } from "../ui/forms";
import { Card, ConfirmButton, DataTable, Facts, Page } from "../ui/parts";
import { Empty, Loaded, Scoped } from "../ui/states";
import { Age, Time } from "../ui/Time";
import { durationOf } from "../ui/time";
import { tagText } from "../ui/typed";
import { ConnectivityBadge, PresenceBadge } from "./DevicesPage";
import { deviceQuery } from "./query";

const tabs = [
  ["/devices/$deviceId", "Overview", "devices:read"],
  ["/devices/$deviceId/resources", "Resources", "devices:read"],
  ["/devices/$deviceId/requests", "Requests", "actions:read"],
  ["/devices/$deviceId/messages", "Messages", "devices:read"],
  ["/devices/$deviceId/sms", "SMS", "sms:read"],
  ["/devices/$deviceId/log", "Log", "logs:read"],
  ["/devices/$deviceId/settings", "Settings", "devices:write"],
] as const satisfies readonly (readonly [string, string, Scope])[];

export function DevicePage(props: { id: string }) {
  const session = useSession();
  useDeviceEvents(props.id);
  return (
    <Page
      title={props.id}
      lead={
        <WithDevice id={props.id} quiet>
          {(device) => (
            <span className="row tight">
              {device.name}
              <PresenceBadge presence={device.presence} />
              <ConnectivityBadge presence={device.presence} />
              {device.presence.lastSeen !== undefined && (
                <span>
                  heard <Age at={device.presence.lastSeen} />
                </span>
              )}
            </span>
          )}
        </WithDevice>
      }
    >
      <Scoped scope="devices:read">
        <nav className="tabs" aria-label="Views of the device">
          {tabs
            .filter(([, , scope]) => hasScope(session, scope))
            .map(([to, label]) => (
              <Link
                key={to}
                to={to}
                params={{ deviceId: props.id }}
                activeOptions={{ exact: true, includeSearch: false }}
              >
                {label}
              </Link>
            ))}
        </nav>
        <Outlet />
      </Scoped>
    </Page>
  );
}

/** Shows what needs a device, once there is one. */
export function WithDevice(props: {
  id: string;
  /** Whether another part of the page shows what goes wrong. */
  quiet?: boolean;
  children: (device: Schemas["InspectedDevice"]) => ReactNode;
}) {
  const query = useQuery(deviceQuery(props.id));
  if (props.quiet === true) return query.data === undefined ? null : props.children(query.data);
  return (
    <Loaded what="device" query={query}>
      {props.children}
    </Loaded>
  );
}

export function DeviceOverview(props: { id: string }) {
  return <WithDevice id={props.id}>{(device) => <Overview device={device} />}</WithDevice>;
}

function Overview({ device }: { device: Schemas["InspectedDevice"] }) {
  return (
    <div className="grid">
      <Card title={`Pending requests (${device.pendingActions.length})`}>
        <Pending requests={device.pendingActions} />
        <CancelAll device={device} />
      </Card>
      <Card title="Identity">
        <Facts
          of={[
            ["Device id", device.deviceId],
            ["Name", device.name],
            ["ICCID", device.iccid],
            ["IMSI", device.imsi],
            ["MSISDN", device.msisdn],
            ["IP address", device.ip],
            ["Endpoint", device.endpoint],
            ["Pre-shared key", device.psk.configured ? device.psk.identity : "none"],
            ["Public key", device.publicKey === undefined ? undefined : "set"],
            ["Security", device.security === "DTLS" ? "DTLS alone" : "with or without DTLS"],
            ["Offline after", device.offlineAfter && durationOf(device.offlineAfter)],
            ["Tags", tagText(device.tags)],
            ["Created", <Time key="" at={device.created} />],
          ]}
        />
      </Card>
      <Card title="Registration">
        <Registration device={device} />
      </Card>
      {device.association !== null && (
        <Card title="DTLS session">
          <Association of={device.association} />
        </Card>
      )}
      {device.bootstrap !== undefined && <LastBootstrap of={device.bootstrap} />}
      <Card title={`Observations (${device.observations.length})`}>
        <Observations device={device} />
      </Card>
    </div>
  );
}

function Registration({ device }: { device: Schemas["InspectedDevice"] }) {
  const { registration, presence } = device;
  if (registration === null) {
    return (
      <Empty title="Not registered over LwM2M.">
        {presence.lastSeen === undefined ? (
          "Nothing was ever heard from the device."
        ) : (
          <>
            Last heard <Age at={presence.lastSeen} /> from{" "}
            {presence.address ?? "an unknown address"}.
          </>
        )}
      </Empty>
    );
  }
  return (
    <Facts
      of={[
        ["Address", presence.address],
        ["LwM2M version", registration.version],
        ["Binding", registration.binding],
        ["Queue mode", registration.queueMode ? "yes: it sleeps between messages" : "no"],
        ["Lifetime", durationOf(registration.lifetime)],
        ["Registered", <Time key="" at={registration.registered} />],
        ["Expires", <Time key="" at={registration.expires} />],
        ["Objects", registration.objects.map((object) => `/${object.id}`).join(" ")],
        [
          "First contact",
          presence.firstRegistered && <Time key="" at={presence.firstRegistered} />,
        ],
      ]}
    />
  );
}

function Pending(props: { requests: readonly Schemas["PendingActionRequest"][] }) {
  const mayCancel = useScope("actions:write");
  if (props.requests.length === 0) return <Empty title="Nothing waits for the device." />;
  return (
    <DataTable
      caption="Requests that are not final"
      rows={props.requests}
      keyOf={(request) => request.id}
      columns={[
        {
          head: "Request",
          cell: (request) => (
            <Link to="/requests/$requestId" params={{ requestId: request.id }}>
              {summaryOf(request.requestData)}
            </Link>
          ),
        },
        { head: "Status", cell: (request) => <StatusBadge status={request.status} /> },
        { head: "Waits for", cell: (request) => reasonOf(request.waitsFor) },
        { head: "Created", cell: (request) => <Age at={request.created} /> },
        ...(mayCancel ? [cancelColumn] : []),
      ]}
    />
  );
}

function CancelAll({ device }: { device: Schemas["InspectedDevice"] }) {
  const cancel = useCancelAll(device.deviceId);
  const mayCancel = useScope("actions:write");
  const waiting = device.pendingActions.filter(({ status }) => status === "SCHEDULED").length;
  if (!mayCancel || waiting < 2) return null;
  return (
    <>
      <ConfirmButton
        label="Cancel all"
        title={`Cancel ${waiting} requests?`}
        confirm="Cancel them"
        disabled={cancel.isPending}
        act={() => cancel.mutate()}
      >
        <p>What was not sent to {device.deviceId} yet will not be sent.</p>
      </ConfirmButton>
      <Refused error={cancel.error} />
    </>
  );
}

function Association({ of: association }: { of: Schemas["Association"] }) {
  return (
    <Facts
      of={[
        ["Key", association.kind === "PSK" ? "pre-shared key" : "raw public key"],
        ["Identity", association.identity],
        ["Cipher suite", association.cipherSuite],
        ["Connection ID", association.connectionId ? "yes" : "no"],
        ["Address", association.address],
        ["Changes of address", association.addressChanges],
        ["Last handshake", <Time key="" at={association.lastHandshake} />],
        ["Resumed", association.resumed ? "yes" : "no"],
      ]}
    />
  );
}

function Observations({ device }: { device: Schemas["InspectedDevice"] }) {
  if (device.observations.length === 0) return <Empty title="Nothing is observed." />;
  return (
    <DataTable
      caption="Observations"
      rows={device.observations}
      keyOf={(observation) => observation.requestId}
      columns={[
        {
          head: "Path",
          cell: (observation) => observation.path ?? observation.paths?.join(" ") ?? "",
        },
        {
          head: "State",
          cell: (observation) =>
            observation.state === "HELD" ? "active" : "started again at the next message",
        },
        { head: "Since", cell: (observation) => <Age at={observation.since} /> },
      ]}
    />
  );
}
