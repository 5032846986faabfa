// What a device reported, newest first.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { decodedText } from "../logs/payload";
import { protocolName } from "../requests/query";
import { DataTable } from "../ui/parts";
import { Empty, Loaded } from "../ui/states";
import { Time } from "../ui/Time";
import { valueText } from "./objects";
import { messagesQuery } from "./query";

export function DeviceMessages(props: { id: string }) {
  const query = useInfiniteQuery(messagesQuery(props.id));
  return (
    <Loaded what="messages" query={query}>
      {({ pages }) => {
        const messages = pages.flatMap((page) => page.items);
        if (messages.length === 0) {
          return <Empty title="No messages.">Messages of a device are kept for 7 days.</Empty>;
        }
        return (
          <>
            <DataTable
              caption="Messages, newest first"
              rows={messages}
              keyOf={(message) => message.id}
              columns={[
                { head: "Received", cell: (message) => <Time at={message.time} /> },
                { head: "Kind", cell: kindOf },
                { head: "Content", cell: (message) => <Content message={message} /> },
              ]}
            />
            {query.hasNextPage && (
              <div className="pager">
                <button
                  type="button"
                  disabled={query.isFetchingNextPage}
                  onClick={() => void query.fetchNextPage()}
                >
                  {query.isFetchingNextPage ? "Loading…" : "Load older messages"}
                </button>
              </div>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

type Message = Schemas["Message"];

const causes: Record<string, string> = {
  ACTION: "answer to a request",
  COMPOSITE_OBSERVATION: "notification",
  OBSERVATION: "notification",
  PASSIVE_REPORT: "passive reporting",
  SEND: "send",
};

function kindOf(message: Message) {
  switch (message.type) {
    case "TELEMETRY_DATA":
      if (message.source !== "LWM2M") return `${protocolName(message.source)} data`;
      return `LwM2M ${causes[message.cause.type] ?? message.cause.type}`;
    case "LIFECYCLE":
      return "lifecycle";
    case "ERROR":
      return "error";
    case "ACTION_RESULT":
      return "result of a request";
    case "SMS_RECEIVED":
      return "SMS from the device";
    case "SMS_REPORT":
      return "SMS to the device";
  }
}

function Content({ message }: { message: Message }) {
  switch (message.type) {
    case "TELEMETRY_DATA":
      if (message.source === "LWM2M") return <Values of={message.payload.value} />;
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
    case "SMS_REPORT":
      return <pre>{JSON.stringify(message.sms, null, 2)}</pre>;
  }
}

function Values(props: { of: Schemas["ValuesByPath"] }) {
  return (
    <ul className="plain">
      {Object.entries(props.of).map(([path, value]) => (
        <li key={path}>
          <code className="muted">{path}</code> {valueText(value)}
        </li>
      ))}
    </ul>
  );
}

function Data({ payload }: { payload: Schemas["DataMessage"]["payload"] }) {
  const bytes = Uint8Array.from(atob(payload.value), (letter) => letter.charCodeAt(0));
  return (
    <>
      {payload.topic !== undefined && <span className="muted">{payload.topic}: </span>}
      <code>{decodedText(bytes) ?? payload.value}</code>
    </>
  );
}
