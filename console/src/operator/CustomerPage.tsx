// One customer: its API clients, its networks, and its end.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { Form, Refused, TextArea } from "../ui/forms";
import { Card, ConfirmButton, Page } from "../ui/parts";
import { ForOperator, Loaded } from "../ui/states";
import { Clients } from "./Clients";
import { networksQuery, useRemoveCustomer, useSetNetworks } from "./query";

export function CustomerPage({ id }: { id: string }) {
  return (
    <Page title={`Customer ${id}`}>
      <ForOperator>
        <Clients owner={{ customer: id }} />
        <Networks customer={id} />
        <Removal customer={id} />
      </ForOperator>
    </Page>
  );
}

function Networks({ customer }: { customer: string }) {
  const set = useSetNetworks(customer);
  return (
    <Card title="Networks">
      <p>
        Devices of the customer may have addresses of these networks alone; of any network, if there
        is none.
      </p>
      <Loaded what="networks" query={useQuery(networksQuery(customer))}>
        {({ networks }) => (
          <Form
            label="Networks"
            submit="Save"
            done={set.isSuccess && "Saved."}
            isPending={set.isPending}
            error={set.error}
            act={(typed) => set.mutate((typed("networks") ?? "").split(/[\s,]+/).filter(Boolean))}
          >
            <TextArea
              label="Networks"
              name="networks"
              defaultValue={networks.join("\n")}
              hint="one in each line, such as 10.0.0.0/8 or fd00::/8"
            />
          </Form>
        )}
      </Loaded>
    </Card>
  );
}

function Removal({ customer }: { customer: string }) {
  const remove = useRemoveCustomer();
  const navigate = useNavigate();
  return (
    <Card title="Removal">
      <ConfirmButton
        label="Remove the customer"
        title={`Remove the customer ${customer}?`}
        confirm="Remove everything"
        disabled={remove.isPending}
        act={() =>
          remove.mutate(customer, { onSuccess: () => void navigate({ to: "/customers" }) })
        }
      >
        <p>
          All its devices, requests, messages, integrations and API clients are deleted. This cannot
          be undone.
        </p>
      </ConfirmButton>
      <Refused error={remove.error} />
    </Card>
  );
}
