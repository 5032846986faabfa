// The name of a device, which leads to it.
import { Link } from "@tanstack/react-router";

import type { Column } from "../ui/parts";

export function DeviceLink({ id }: { id: string }) {
  return (
    <span className="clip">
      <Link to="/devices/$deviceId" params={{ deviceId: id }}>
        {id}
      </Link>
    </span>
  );
}

/** The column of lists whose rows are about a device, or about none. */
export const deviceColumn: Column<{ deviceId?: string }> = {
  head: "Device",
  cell: ({ deviceId }) => (deviceId === undefined ? "—" : <DeviceLink id={deviceId} />),
};
