// The last bootstrap of a device, step by step.
import type { Schemas } from "../api/client";
import { Badge, Card, DataTable, Facts } from "../ui/parts";
import { Notice, type Tone } from "../ui/states";
import { Time } from "../ui/Time";
import { titleOf } from "../ui/words";

type Bootstrap = Schemas["Bootstrap"];

const states: Record<Bootstrap["state"], [Tone, string]> = {
  RUNNING: ["busy", "Running"],
  SUCCEEDED: ["good", "Succeeded"],
  FAILED: ["bad", "Failed"],
  INTERRUPTED: ["warn", "Interrupted by a stop of the service"],
};

/** A code as CoAP writes it: `2.04`. */
function codeText(code: string): string {
  return `${code.slice(0, 1)}.${code.slice(1)}`;
}

export function LastBootstrap({ of: bootstrap }: { of: Bootstrap }) {
  const [tone, label] = states[bootstrap.state];
  return (
    <Card title="Last bootstrap">
      {bootstrap.error !== undefined && <Notice tone="bad">{bootstrap.error}</Notice>}
      <Facts
        of={[
          [
            "State",
            <Badge key="" tone={tone}>
              {label}
            </Badge>,
          ],
          ["Security", bootstrap.security === "DTLS" ? "DTLS" : "none"],
          ["Started", <Time key="" at={bootstrap.started} />],
          ["Ended", bootstrap.ended && <Time key="" at={bootstrap.ended} />],
        ]}
      />
      <DataTable
        caption="Steps of the bootstrap"
        rows={bootstrap.steps}
        keyOf={({ operation, path, time }) => `${time} ${operation} ${path ?? ""}`}
        columns={[
          {
            head: "Step",
            cell: ({ operation, path = "" }) => `${titleOf(operation)} ${path}`,
          },
          { head: "Format", cell: ({ format }) => format ?? "—" },
          { head: "Answer", cell: ({ code }) => (code === undefined ? "none" : codeText(code)) },
          { head: "Time", cell: ({ time }) => <Time at={time} /> },
        ]}
      />
    </Card>
  );
}
