// One entry of the administration log, with the payload it is about.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment } from "react";

import { Card, Facts, Page } from "../ui/parts";
import { Loaded, Scoped } from "../ui/states";
import { Time } from "../ui/Time";
import { decodedAs } from "./decoding";
import { CategoryBadge } from "./LogPage";
import { decodedText, hexRows } from "./payload";
import { entryQuery, payloadQuery } from "./query";

export function EntryPage(props: { id: string }) {
  return (
    <Page title="Log entry" lead={<code className="small">{props.id}</code>}>
      <Scoped scope="logs:read">
        <Loaded what="entry" query={useQuery(entryQuery(props.id))}>
          {(entry) => (
            <div className="grid">
              <Card title={entry.message}>
                <p>{entry.description}</p>
                <Facts
                  of={[
                    ["Category", <CategoryBadge key="" category={entry.category} />],
                    ["Type", entry.type],
                    ["Time", <Time key="" at={entry.timestamp} />],
                    [
                      "ICCID",
                      entry.iccid && (
                        <Link key="" to="/devices" search={{ q: entry.iccid }}>
                          {entry.iccid}
                        </Link>
                      ),
                    ],
                    ["IMSI", entry.imsi],
                    ["IP address", entry.ip],
                    ["Trace id", <code key="">{entry.traceId}</code>],
                  ]}
                />
              </Card>
              {entry.payloadReference !== undefined && <Payload entry={props.id} />}
            </div>
          )}
        </Loaded>
      </Scoped>
    </Page>
  );
}

function Payload(props: { entry: string }) {
  return (
    <Card title="Payload">
      <Loaded what="payload" query={useQuery(payloadQuery(props.entry))}>
        {(bytes) => {
          const text = decodedText(bytes);
          return (
            <>
              <p className="muted small">{bytes.length} bytes</p>
              <h3>Hexadecimal</h3>
              <pre tabIndex={0}>{hexRows(bytes)}</pre>
              <h3>Text</h3>
              {text === undefined ? (
                <p className="muted">The bytes are no text.</p>
              ) : (
                <pre tabIndex={0}>{text}</pre>
              )}
              {decodedAs(bytes).map((reading) => (
                <Fragment key={reading.format}>
                  <h3>Read as {reading.format}</h3>
                  <pre tabIndex={0}>{reading.text}</pre>
                </Fragment>
              ))}
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}
