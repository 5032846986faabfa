// The administration log, newest first.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import { useFleetEvents } from "../live/events";
import { Filters, SearchField } from "../ui/Filters";
import { PagedTable } from "../ui/PagedTable";
import { Badge, Card, Page, Select } from "../ui/parts";
import { type Search, given, page, text, word } from "../ui/search";
import { Empty, Loaded, Scoped } from "../ui/states";
import { Age } from "../ui/Time";
import { localInput, utcInput } from "../ui/typed";
import { lastDays } from "./days";
import { type LogSearch, categories, logQuery, statisticsQuery, types } from "./query";

export function readLogSearch(search: Search): LogSearch {
  return given({
    category: word(search, "category", categories),
    type: word(search, "type", types),
    deviceId: text(search, "deviceId"),
    iccid: text(search, "iccid"),
    kind: text(search, "kind"),
    startDateTime: text(search, "startDateTime"),
    endDateTime: text(search, "endDateTime"),
    page: page(search),
  });
}

export function CategoryBadge(props: { category: "error" | "info" }) {
  return <Badge tone={props.category === "error" ? "bad" : "calm"}>{props.category}</Badge>;
}

export function LogPage(props: { search: LogSearch }) {
  useFleetEvents(["ERROR"]);
  return (
    <Page title="Log">
      <Scoped scope="logs:read">
        <Statistics />
        <LogFilters search={props.search} />
        <LogList search={props.search} />
      </Scoped>
    </Page>
  );
}

function LogFilters(props: { search: LogSearch }) {
  const navigate = useNavigate();
  const show = (change: { [K in keyof LogSearch]?: LogSearch[K] | undefined }) => {
    void navigate({ to: "/log", search: given({ ...props.search, page: undefined, ...change }) });
  };
  return (
    <Filters
      search={(typed) =>
        show({
          deviceId: typed("device"),
          iccid: typed("iccid"),
          kind: typed("kind"),
          startDateTime: utcInput(typed("start")),
          endDateTime: utcInput(typed("end")),
        })
      }
    >
      <SearchField label="Device id" name="device" value={props.search.deviceId} />
      <Select
        label="Category"
        any="Any category"
        options={categories}
        value={props.search.category}
        choose={(category) => show({ category })}
      />
      <Select
        label="Type"
        any="Any type"
        options={types}
        value={props.search.type}
        choose={(type) => show({ type })}
      />
      <SearchField label="ICCID" name="iccid" value={props.search.iccid} />
      <SearchField
        label="Kind"
        name="kind"
        value={props.search.kind}
        placeholder="InvalidDataType"
        pattern="[A-Za-z0-9]+"
        title="The word in brackets, such as InvalidDataType"
      />
      <SearchField
        label="From"
        name="start"
        type="datetime-local"
        value={localInput(props.search.startDateTime)}
      />
      <SearchField
        label="To"
        name="end"
        type="datetime-local"
        value={localInput(props.search.endDateTime)}
      />
    </Filters>
  );
}

export function LogList(props: { search: LogSearch }) {
  return (
    <PagedTable
      what="log"
      query={useQuery(logQuery(props.search))}
      empty={
        <Empty title="No entries.">
          Without a time the last 7 days are shown; entries are kept for 30 days.
        </Empty>
      }
      caption="Entries of the administration log, newest first"
      keyOf={(entry) => entry.id}
      columns={[
        { head: "Time", cell: (entry) => <Age at={entry.timestamp} /> },
        { head: "Category", cell: (entry) => <CategoryBadge category={entry.category} /> },
        {
          head: "Message",
          cell: (entry) => (
            <Link to="/log/$entryId" params={{ entryId: entry.id }}>
              {entry.message}
            </Link>
          ),
        },
        { head: "Description", cell: (entry) => entry.description },
        { head: "Device", cell: ({ iccid }) => <DeviceOf iccid={iccid} /> },
      ]}
    />
  );
}

/** An entry knows the SIM of its device, which the list of devices finds. */
function DeviceOf({ iccid }: { iccid: string | undefined }) {
  if (iccid === undefined) return "—";
  return (
    <span className="clip">
      <Link to="/devices" search={{ q: iccid }}>
        {iccid}
      </Link>
    </span>
  );
}

/** Errors of the last seven days, in the days of the viewer's zone. */
export function Statistics() {
  return (
    <Card title="Errors by day">
      <Loaded what="statistics" query={useQuery(statisticsQuery)}>
        {({ administrationLogs, totalUniqueDevices }) => {
          if (administrationLogs.length === 0) {
            return <Empty title="No errors in the last 7 days." />;
          }
          const days = lastDays(administrationLogs, new Date());
          const most = Math.max(...days.map(({ amount }) => amount), 1);
          return (
            <>
              <ol className="bars">
                {days.map(({ day, amount }) => (
                  <li key={day}>
                    <span>{day}</span>
                    <meter min={0} max={most} value={amount} aria-label={`${amount} errors`} />
                    <span>{amount}</span>
                  </li>
                ))}
              </ol>
              <p className="muted small">
                Of {totalUniqueDevices} {totalUniqueDevices === 1 ? "device" : "devices"}.
              </p>
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}
