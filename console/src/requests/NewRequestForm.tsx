// Creates a request to one device.
import { Form } from "../ui/forms";
import { requestOf } from "./newRequest";
import { Outcome } from "./parts";
import { useCreateRequest } from "./query";
import { RequestFields, useProtocol } from "./RequestFields";

export function NewRequestForm(props: { device: string }) {
  const [protocol, choose] = useProtocol();
  const create = useCreateRequest(props.device);
  return (
    <details className="card">
      <summary>New request</summary>
      <Form
        label="New request"
        submit="Create the request"
        isPending={create.isPending}
        error={create.error}
        act={(typed) => create.mutate(requestOf(protocol, typed))}
      >
        <RequestFields protocol={protocol} choose={choose} />
      </Form>
      {create.data !== undefined && <Outcome id={create.data} />}
    </details>
  );
}
