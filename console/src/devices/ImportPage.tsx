// Imports devices from a file, and shows what was refused.
import { useEffect, useRef, useState } from "react";

import { faultsText } from "../api/client";
import { Field, Refused } from "../ui/forms";
import { Card, DataTable, Facts, Page } from "../ui/parts";
import { Notice, Scoped } from "../ui/states";
import { type Progress, useImport } from "./importing";

export function ImportPage() {
  return (
    <Page title="Import devices">
      <Scoped scope="devices:write">
        <Import />
      </Scoped>
    </Page>
  );
}

function Import() {
  const { start, progress } = useImport();
  const [file, setFile] = useState<File>();
  const stop = useRef<AbortController>(undefined);
  // Whoever leaves the view stops the import after the part that is under way.
  useEffect(() => () => stop.current?.abort(), []);
  return (
    <>
      <Card title="File">
        <p className="muted">
          CSV whose first line names the columns (deviceId, iccid, imsi, msisdn, ip, endpoint, name,
          security, publicKey, pskIdentity, pskSecretKey, pskFormat, tag:KEY), or a JSON object in
          each line (NDJSON). A line whose device exists already, as the line says, changes nothing:
          a file can be imported again.
        </p>
        <form
          className="stack"
          aria-label="Import"
          onSubmit={(event) => {
            event.preventDefault();
            if (file === undefined) return;
            stop.current = new AbortController();
            start.mutate({ file, stop: stop.current.signal });
          }}
        >
          <Field
            label="File"
            type="file"
            required
            accept=".csv,.ndjson,.jsonl,.json"
            disabled={start.isPending}
            onChange={(event) => setFile(event.target.files?.[0])}
          />
          <div className="row">
            <button type="submit" className="primary" disabled={start.isPending}>
              {start.isPending ? "Importing…" : "Import"}
            </button>
            {start.isPending && (
              <button type="button" onClick={() => stop.current?.abort()}>
                Stop
              </button>
            )}
          </div>
        </form>
      </Card>
      {(start.isPending || start.data !== undefined || progress.bytes > 0) && (
        <Outcome progress={progress} size={file?.size ?? 0} isPending={start.isPending} />
      )}
      <Refused error={start.error} />
      {progress.refusals.length > 0 && <Refusals of={progress} />}
    </>
  );
}

function Outcome(props: { progress: Progress; size: number; isPending: boolean }) {
  const { progress, size, isPending } = props;
  return (
    <Card title="Progress">
      {isPending && <p className="muted">Keep this view open until the import has ended.</p>}
      <progress max={Math.max(size, 1)} value={progress.bytes} aria-label="Imported bytes" />
      <div role="status">
        {!isPending && progress.bytes < size && (
          <Notice tone="warn">
            The import has ended before the end of the file. Import it again to do the rest.
          </Notice>
        )}
        <Facts
          of={[
            ["Lines", progress.lines],
            ["Created", progress.created],
            ["Unchanged", progress.unchanged],
            ["Refused", progress.refused],
          ]}
        />
      </div>
    </Card>
  );
}

function Refusals({ of: { refusals, refused } }: { of: Progress }) {
  return (
    <Card title="Refused lines">
      <DataTable
        caption="Refused lines"
        rows={refusals}
        keyOf={({ line }) => `${line}`}
        columns={[
          { head: "Line", cell: ({ line }) => line },
          { head: "Reason", cell: ({ errors }) => faultsText(errors) },
          { head: "Code", cell: ({ errors }) => errors.map(({ code }) => code).join(", ") },
        ]}
      />
      {refused > refusals.length && (
        <p className="muted small">Only the first {refusals.length} are shown.</p>
      )}
    </Card>
  );
}
