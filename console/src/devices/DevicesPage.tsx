// The list of devices: a page of those that match, never the fleet.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import type { Schemas } from "../api/client";
import type { AskedSearch } from "../jobs/asked";
import { protocolName, protocols } from "../requests/words";
import { useScope } from "../session/query";
import { Filters, SearchField } from "../ui/Filters";
import { Badge, type Column, DataTable, Page, Select } from "../ui/parts";
import { type Search, given, text, whole, word } from "../ui/search";
import { Empty, Loaded, Scoped, type Tone } from "../ui/states";
import { Age } from "../ui/Time";
import { localInput, tagTexts, utcInput } from "../ui/typed";
import { DeviceLink } from "./DeviceLink";
import { type DeviceSearch, connectivities, devicesQuery, versions } from "./query";

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
    version: word({ version: String(search["version"]) }, "version", versions),
    object: whole(search, "object"),
    firmware: text(search, "firmware"),
    lastSeenBefore: text(search, "lastSeenBefore"),
    lastSeenAfter: text(search, "lastSeenAfter"),
    connectivity: word(search, "connectivity", connectivities),
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

/** Whether the device was silent for too long; nothing where that is not known. */
export function ConnectivityBadge({ presence }: { presence: Schemas["Presence"] }) {
  if (presence.connectivity === undefined) return null;
  const label = connectivities.find(([word]) => word === presence.connectivity)?.[1];
  return <Badge tone={presence.connectivity === "ONLINE" ? "good" : "bad"}>{label}</Badge>;
}

const columns: Column<Schemas["ListedDevice"]>[] = [
  {
    head: "Device",
    cell: ({ deviceId, name }) => (
      <>
        <DeviceLink id={deviceId} />
        {name !== undefined && <div className="muted small">{name}</div>}
      </>
    ),
  },
  {
    head: "Presence",
    cell: ({ presence }) => (
      <span className="row tight">
        <PresenceBadge presence={presence} />
        <ConnectivityBadge presence={presence} />
      </span>
    ),
  },
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
  const tags = tagTexts(props.of);
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
    <Page title="Devices" actions={<Additions />}>
      <Scoped scope="devices:read">
        <DeviceFilters search={props.search} />
        <DeviceList search={props.search} />
      </Scoped>
    </Page>
  );
}

function Additions() {
  if (!useScope("devices:write")) return null;
  return (
    <>
      <Link to="/new-device">New device</Link>
      <Link to="/import">Import</Link>
    </>
  );
}

function DeviceFilters(props: { search: DeviceSearch }) {
  const { search } = props;
  const navigate = useNavigate();
  const show = (change: { [K in keyof DeviceSearch]?: DeviceSearch[K] | undefined }) => {
    void navigate({ to: "/devices", search: given({ ...search, cursor: undefined, ...change }) });
  };
  return (
    <Filters
      search={(typed) =>
        show({
          q: typed("q"),
          tag: typed("tag"),
          firmware: typed("firmware"),
          object: whole({ object: typed("object") }, "object"),
          lastSeenBefore: utcInput(typed("lastSeenBefore")),
          lastSeenAfter: utcInput(typed("lastSeenAfter")),
        })
      }
    >
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
      <Select
        label="Connectivity"
        any="Any"
        options={connectivities}
        value={search.connectivity}
        choose={(connectivity) => show({ connectivity })}
      />
      <details open={isNarrowedFurther(search)}>
        <summary>More filters</summary>
        <div className="filters">
          <Select
            label="LwM2M version"
            any="Any"
            options={versions}
            value={search.version}
            choose={(version) => show({ version })}
          />
          <SearchField
            label="Has object"
            name="object"
            value={search.object === undefined ? undefined : `${search.object}`}
            placeholder="3303"
            inputMode="numeric"
            pattern="[0-9]{1,5}"
            title="The number of an object"
          />
          <SearchField label="Firmware" name="firmware" value={search.firmware} />
          <SearchField
            label="Not seen since"
            name="lastSeenBefore"
            type="datetime-local"
            value={localInput(search.lastSeenBefore)}
          />
          <SearchField
            label="Seen since"
            name="lastSeenAfter"
            type="datetime-local"
            value={localInput(search.lastSeenAfter)}
          />
        </div>
      </details>
    </Filters>
  );
}

function isNarrowedFurther(search: DeviceSearch): boolean {
  const { version, object, firmware, lastSeenBefore, lastSeenAfter } = search;
  return [version, object, firmware, lastSeenBefore, lastSeenAfter].some(Boolean);
}

function DeviceList(props: { search: DeviceSearch }) {
  const { search } = props;
  const { cursor, ...filters } = search;
  // The selection stays while one goes from page to page.
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const mayAct = useScope("actions:write");
  const shown = mayAct ? [selectColumn(selected, setSelected), ...columns] : columns;
  return (
    <Loaded what="devices" query={useQuery(devicesQuery(search))}>
      {({ items, total, totalIsExact, nextCursor }) =>
        items.length === 0 ? (
          <NoDevices search={search} nextCursor={nextCursor} />
        ) : (
          <>
            <div className="row">
              <p className="muted small" role="status">
                {totalIsExact ? total : `more than ${total}`} {total === 1 ? "device" : "devices"}
              </p>
              {mayAct && (
                <Selection
                  selected={selected}
                  select={setSelected}
                  page={items.map(({ deviceId }) => deviceId)}
                  filters={filters}
                />
              )}
            </div>
            <DataTable
              caption="Devices"
              columns={shown}
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

type Select = (selected: ReadonlySet<string>) => void;

function selectColumn(
  selected: ReadonlySet<string>,
  select: Select,
): Column<Schemas["ListedDevice"]> {
  const toggle = (id: string) => {
    const changed = new Set(selected);
    if (!changed.delete(id)) changed.add(id);
    select(changed);
  };
  return {
    head: "Select",
    cell: ({ deviceId }) => (
      <input
        type="checkbox"
        aria-label={`Select ${deviceId}`}
        checked={selected.has(deviceId)}
        onChange={() => toggle(deviceId)}
      />
    ),
  };
}

/** As many devices as one call takes; more are asked by a filter. */
const selectedMax = 100;

function Selection(props: {
  selected: ReadonlySet<string>;
  select: Select;
  page: readonly string[];
  filters: DeviceSearch;
}) {
  const { selected, select, page, filters } = props;
  if (selected.size === 0) {
    return (
      <>
        <button type="button" onClick={() => select(new Set(page))}>
          Select this page
        </button>
        <Link to="/bulk" search={filters}>
          Request to all that match
        </Link>
        <FirmwareLink search={filters} label="Firmware for all that match" />
      </>
    );
  }
  return (
    <>
      <span role="status">{selected.size} selected</span>
      <button type="button" onClick={() => select(new Set([...selected, ...page]))}>
        Select this page
      </button>
      <button type="button" onClick={() => select(new Set())}>
        Clear
      </button>
      {selected.size > selectedMax ? (
        <span className="fault">
          At most {selectedMax} can be selected: narrow the list, and ask all that match.
        </span>
      ) : (
        <>
          <Link to="/bulk" search={{ ids: [...selected].join(",") }}>
            Request to the selected
          </Link>
          <FirmwareLink
            search={{ ids: [...selected].join(",") }}
            label="Firmware for the selected"
          />
        </>
      )}
    </>
  );
}

function FirmwareLink(props: { search: AskedSearch; label: string }) {
  if (!useScope("devices:write")) return null;
  return (
    <Link to="/new-campaign" search={props.search}>
      {props.label}
    </Link>
  );
}

function NoDevices(props: { search: DeviceSearch; nextCursor: string | undefined }) {
  const { search, nextCursor } = props;
  if (nextCursor !== undefined) {
    // The service examines a bounded number of devices for each page.
    return (
      <Empty title="No device matches so far.">
        <Link to="/devices" search={{ ...search, cursor: nextCursor }} rel="next">
          Look further
        </Link>
      </Empty>
    );
  }
  if (Object.keys(search).length > 0) {
    return (
      <Empty title="No device matches.">
        <Link to="/devices">Show all devices</Link>
      </Empty>
    );
  }
  return (
    <Empty title="There are no devices yet.">
      <span className="row">
        <Additions />
      </span>
    </Empty>
  );
}
