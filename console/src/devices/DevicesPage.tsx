// The list of devices: a page of those that match, never the fleet.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { protocolName, protocols } from "../requests/query";
import { Filters, SearchField } from "../ui/Filters";
import { Badge, type Column, DataTable, Page, Select } from "../ui/parts";
import { type Search, given, text, word } from "../ui/search";
import { Empty, Loaded, Scoped, type Tone } from "../ui/states";
import { Age } from "../ui/Time";
import { type DeviceSearch, devicesQuery } from "./query";

const presences: Record<Schemas["Presence"]["state"], [Tone, string]> = {
  AWAKE: ["good", "Awake"],
  ASLEEP: ["calm", "Asleep"],
  UNREGISTERED: ["warn", "Not registered"],
};

const registrations = [
  ["true", "Registered"],
  ["false", "Not registered"],
] as const;

export function readDeviceSearch(search: Search): DeviceSearch {
  const { registered } = search;
  return given({
    q: text(search, "q"),
    registered: typeof registered === "boolean" ? registered : undefined,
    protocol: word(search, "protocol", protocols),
    tag: text(search, "tag"),
    cursor: text(search, "cursor"),
  });
}

export function PresenceBadge(props: { presence: Schemas["Presence"] }) {
  const { state, protocol } = props.presence;
  // Devices without LwM2M never register.
  if (state === "UNREGISTERED" && protocol !== undefined && protocol !== "LWM2M") {
    return <Badge tone="calm">Heard over {protocolName(protocol)}</Badge>;
  }
  const [tone, label] = presences[state];
  return <Badge tone={tone}>{label}</Badge>;
}

const columns: Column<Schemas["ListedDevice"]>[] = [
  {
    head: "Device",
    cell: ({ deviceId, name }) => (
      <>
        <Link to="/devices/$deviceId" params={{ deviceId }}>
          {deviceId}
        </Link>
        {name !== undefined && <div className="muted small">{name}</div>}
      </>
    ),
  },
  { head: "Presence", cell: ({ presence }) => <PresenceBadge presence={presence} /> },
  {
    head: "Last seen",
    cell: ({ presence: { lastSeen } }) =>
      lastSeen === undefined ? <span className="muted">never</span> : <Age at={lastSeen} />,
  },
  {
    head: "Protocol",
    cell: ({ presence: { protocol } }) => (protocol ? protocolName(protocol) : "—"),
  },
  { head: "ICCID", cell: ({ iccid }) => <span className="clip">{iccid}</span> },
  { head: "Tags", cell: ({ tags }) => <Tags of={tags} /> },
];

function Tags(props: { of: Record<string, string> }) {
  const tags = Object.entries(props.of).map(([key, value]) => `${key}:${value}`);
  if (tags.length === 0) return "—";
  return (
    <span className="row tight">
      {tags.map((tag) => (
        <Link key={tag} className="badge calm" to="/devices" search={{ tag }}>
          {tag}
        </Link>
      ))}
    </span>
  );
}

export function DevicesPage(props: { search: DeviceSearch }) {
  return (
    <Page title="Devices">
      <Scoped scope="devices:read">
        <DeviceFilters search={props.search} />
        <DeviceList search={props.search} />
      </Scoped>
    </Page>
  );
}

function DeviceFilters(props: { search: DeviceSearch }) {
  const { search } = props;
  const navigate = useNavigate();
  const show = (change: { [K in keyof DeviceSearch]?: DeviceSearch[K] | undefined }) => {
    void navigate({ to: "/devices", search: given({ ...search, cursor: undefined, ...change }) });
  };
  return (
    <Filters search={(typed) => show({ q: typed("q"), tag: typed("tag") })}>
      <SearchField
        label="Search"
        name="q"
        value={search.q}
        className="field wide"
        placeholder="Id, ICCID, IMSI, number, endpoint"
      />
      <SearchField
        label="Tag"
        name="tag"
        value={search.tag}
        placeholder="key:value"
        pattern="[A-Za-z0-9._\-]+:[A-Za-z0-9._\-]+"
        title="A key and a value, such as site:berlin"
      />
      <Select
        label="Registration"
        any="Any"
        options={registrations}
        value={search.registered === undefined ? undefined : `${search.registered}`}
        choose={(chosen) => show({ registered: chosen && chosen === "true" })}
      />
      <Select
        label="Protocol"
        any="Any"
        options={protocols}
        value={search.protocol}
        choose={(protocol) => show({ protocol })}
      />
    </Filters>
  );
}

function DeviceList(props: { search: DeviceSearch }) {
  const { search } = props;
  const { cursor, ...filters } = search;
  return (
    <Loaded what="devices" query={useQuery(devicesQuery(search))}>
      {({ items, total, totalIsExact, nextCursor }) =>
        items.length === 0 ? (
          <NoDevices isFiltered={Object.keys(search).length > 0} />
        ) : (
          <>
            <p className="muted small" role="status">
              {totalIsExact ? total : `more than ${total}`} {total === 1 ? "device" : "devices"}
            </p>
            <DataTable
              caption="Devices"
              columns={columns}
              rows={items}
              keyOf={(device) => device.deviceId}
            />
            <nav className="pager" aria-label="Pages">
              {cursor !== undefined && (
                <Link to="/devices" search={filters}>
                  First page
                </Link>
              )}
              {nextCursor !== undefined && (
                <Link to="/devices" search={{ ...filters, cursor: nextCursor }} rel="next">
                  Next page
                </Link>
              )}
            </nav>
          </>
        )
      }
    </Loaded>
  );
}

function NoDevices(props: { isFiltered: boolean }) {
  if (props.isFiltered) {
    return (
      <Empty title="No device matches.">
        <Link to="/devices">Show all devices</Link>
      </Empty>
    );
  }
  return (
    <Empty title="There are no devices yet.">
      Create one with <code>POST /management-api/v1/devices</code>, or import many: the{" "}
      <a href="/docs">documentation</a> shows how.
    </Empty>
  );
}
