// Shows which devices something is about.
import type { Schemas } from "../api/client";
import { Card, Facts } from "../ui/parts";
import { Notice } from "../ui/states";
import type { Asked } from "./asked";

export function AskedDevices({ asked }: { asked: Asked }) {
  if ("deviceIds" in asked) {
    return (
      <Card title={`Selected devices (${asked.deviceIds.length})`}>
        <p className="ids">{asked.deviceIds.join(", ")}</p>
      </Card>
    );
  }
  const conditions = Object.entries(asked.filter).map(([name, value]): [string, string] => [
    conditionNames[name as keyof Schemas["DeviceFilter"]],
    String(value),
  ]);
  return (
    <Card title="All devices that match">
      {conditions.length === 0 ? (
        <Notice tone="warn">There is no condition: every device matches.</Notice>
      ) : (
        <Facts of={conditions} />
      )}
    </Card>
  );
}

const conditionNames: Record<keyof Schemas["DeviceFilter"], string> = {
  q: "Begins with",
  registered: "Registered",
  protocol: "Protocol",
  tag: "Tag",
  version: "LwM2M version",
  object: "Has object",
  firmware: "Firmware",
  lastSeenBefore: "Not seen since",
  lastSeenAfter: "Seen since",
  connectivity: "Connectivity",
};
