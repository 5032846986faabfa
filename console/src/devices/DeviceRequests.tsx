// The requests to one device, and its part of the administration log.
import { LogList } from "../logs/LogPage";
import { NewRequestForm } from "../requests/NewRequestForm";
import { RequestList, requestColumns } from "../requests/RequestsPage";
import { useScope } from "../session/query";
import { given } from "../ui/search";
import { Scoped } from "../ui/states";

export function DeviceRequests(props: { id: string; page: number | undefined }) {
  const { id: deviceId, page } = props;
  const mayWrite = useScope("actions:write");
  return (
    <Scoped scope="actions:read">
      {mayWrite && <NewRequestForm device={deviceId} />}
      <RequestList search={{ deviceId, ...given({ page }) }} columns={requestColumns} />
    </Scoped>
  );
}

export function DeviceLog(props: { id: string; page: number | undefined }) {
  const { id: deviceId, page } = props;
  return (
    <Scoped scope="logs:read">
      <LogList search={{ deviceId, ...given({ page }) }} />
    </Scoped>
  );
}
