// The history of a device, newest first: its messages, a chart of numbers, and a file of them.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { Chart } from "../ui/Chart";
import { csvOf, saveAs } from "../ui/csv";
import { Filters, SearchField } from "../ui/Filters";
import { Refused } from "../ui/forms";
import { LoadMore } from "../ui/LoadMore";
import { useNewestFirst } from "../ui/newest";
import { DataTable, Select } from "../ui/parts";
import type { Point } from "../ui/scale";
import { type Search, given, text, word } from "../ui/search";
import { Empty, Loaded } from "../ui/states";
import { Time } from "../ui/Time";
import { localInput, utcInput } from "../ui/typed";
import {
  type HistorySearch,
  type Message,
  dataText,
  kindOf,
  measuredAt,
  messageTypes,
  pointsOf,
  pointsOfBuckets,
  rowsOf,
} from "./history";
import { valueText } from "./objects";
import { history, seriesQuery, wholeHistory } from "./query";

export function readHistorySearch(search: Search): HistorySearch {
  return given({
    type: word(search, "type", messageTypes),
    path: text(search, "path"),
    from: text(search, "from"),
    to: text(search, "to"),
  });
}

export function DeviceMessages(props: { id: string; search: HistorySearch }) {
  const { id, search } = props;
  const { result, query } = useNewestFirst(history(id, search));
  return (
    <>
      <HistoryFilters id={id} search={search} />
      <Loaded what="messages" query={result}>
        {(messages) => {
          if (messages.length === 0) {
            return <Empty title="No messages.">Messages of a device are kept for 7 days.</Empty>;
          }
          return (
            <>
              {search.path !== undefined && (
                <Numbers
                  id={id}
                  path={search.path}
                  search={search}
                  shown={pointsOf(messages, search.path)}
                  isAll={!query.hasNextPage}
                />
              )}
              <SaveButton id={id} search={search} />
              <Messages of={messages} path={search.path} />
              <LoadMore label="Load older messages" query={query} />
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function HistoryFilters(props: { id: string; search: HistorySearch }) {
  const { id: deviceId, search } = props;
  const navigate = useNavigate();
  const show = (change: { [K in keyof HistorySearch]?: HistorySearch[K] | undefined }) =>
    void navigate({
      to: "/devices/$deviceId/messages",
      params: { deviceId },
      search: given({ ...search, ...change }),
    });
  return (
    <Filters
      search={(typed) =>
        show({
          path: typed("path"),
          from: utcInput(typed("from")),
          to: utcInput(typed("to")),
        })
      }
    >
      <SearchField
        label="Path"
        name="path"
        value={search.path}
        placeholder="/3303/0/5700"
        pattern="(/[0-9]{1,5}){1,4}"
        title="Numbers with a slash before each, such as /3303/0/5700"
      />
      <Select
        label="Kind"
        any="Every kind"
        options={messageTypes}
        value={search.type}
        choose={(type) => show({ type })}
      />
      <SearchField label="From" name="from" type="datetime-local" value={localInput(search.from)} />
      <SearchField label="To" name="to" type="datetime-local" value={localInput(search.to)} />
    </Filters>
  );
}

/** A chart of the numbers of a path: of those in the list, unless the service has more detail of all. */
function Numbers(props: {
  id: string;
  path: string;
  search: HistorySearch;
  shown: readonly Point[];
  isAll: boolean;
}) {
  const { id, path, search, shown, isAll } = props;
  const { data } = useQuery({ ...seriesQuery(id, path, search), enabled: !isAll });
  const buckets = data?.items ?? [];
  const isReduced = buckets.length > shown.length;
  const points = isReduced ? pointsOfBuckets(buckets) : shown;
  const lastValue = isReduced ? buckets.at(-1)?.last : shown.at(-1)?.value;
  if (points.length < 2 || lastValue === undefined) return null;
  return (
    <section className="card" aria-label="Chart">
      <Chart label={path} points={points} lastValue={lastValue} />
      {!isAll && (!isReduced || data?.truncated === true) && (
        <p className="muted small">The chart has the latest part: narrow the time for others.</p>
      )}
    </section>
  );
}

function SaveButton(props: { id: string; search: HistorySearch }) {
  const { id, search } = props;
  const save = useMutation({
    mutationFn: () => wholeHistory(id, search),
    onSuccess: ({ messages }) => saveAs(`${id}.csv`, csvOf(rowsOf(messages))),
  });
  return (
    <div className="row">
      <button type="button" disabled={save.isPending} onClick={() => save.mutate()}>
        {save.isPending ? "Loading all messages…" : "Download as CSV"}
      </button>
      <span role="status" className="muted small">
        {save.data?.isCut === true &&
          `The file has the latest ${save.data.messages.length} messages: narrow the time for others.`}
      </span>
      <Refused error={save.error} />
    </div>
  );
}

function Messages(props: { of: readonly Message[]; path: string | undefined }) {
  return (
    <DataTable
      caption="Messages, newest first"
      rows={props.of}
      keyOf={(message) => message.id}
      columns={[
        { head: "Received", cell: (message) => <Time at={message.time} /> },
        {
          head: "Measured",
          cell: (message) => ("measured" in message ? <Time at={measuredAt(message)} /> : "—"),
        },
        { head: "Kind", cell: kindOf },
        { head: "Content", cell: (message) => <Content message={message} path={props.path} /> },
      ]}
    />
  );
}

function Content({ message, path }: { message: Message; path: string | undefined }) {
  switch (message.type) {
    case "TELEMETRY_DATA":
      if (message.source === "LWM2M") return <Values of={message.payload.value} path={path} />;
      return <Data payload={message.payload} />;
    case "LIFECYCLE":
      return message.lifecycle.message;
    case "ERROR":
      return message.error.description;
    case "ACTION_RESULT":
      return (
        <Link to="/requests/$requestId" params={{ requestId: message.action.requestId }}>
          {message.action.status}
        </Link>
      );
    case "SMS_RECEIVED":
      return <span className="sms-text">{message.sms.payload}</span>;
    case "SMS_REPORT":
      return message.sms.status.status.toLowerCase();
  }
}

/** Values; those at or below a path alone, if there is one. */
function Values(props: { of: Schemas["ValuesByPath"]; path: string | undefined }) {
  const { path } = props;
  const isShown = (known: string) =>
    path === undefined || known === path || known.startsWith(`${path}/`);
  return (
    <ul className="plain">
      {Object.entries(props.of)
        .filter(([known]) => isShown(known))
        .map(([known, value]) => (
          <li key={known}>
            <code className="muted">{known}</code> {valueText(value)}
          </li>
        ))}
    </ul>
  );
}

function Data({ payload }: { payload: Schemas["DataMessage"]["payload"] }) {
  return (
    <>
      {payload.topic !== undefined && <span className="muted">{payload.topic}: </span>}
      <code>{dataText(payload)}</code>
    </>
  );
}
