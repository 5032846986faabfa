// The views of the operator.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import { Field, Form } from "../ui/forms";
import { PagedTable } from "../ui/PagedTable";
import { Card, Page } from "../ui/parts";
import { given } from "../ui/search";
import { Empty, ForOperator } from "../ui/states";
import { Age, Time } from "../ui/Time";
import { customersQuery, strangersQuery, useCreateCustomer } from "./query";

export function CustomersPage(props: { page: number }) {
  return (
    <Page title="Customers">
      <ForOperator>
        <Customers page={props.page} />
      </ForOperator>
    </Page>
  );
}

function Customers(props: { page: number }) {
  return (
    <>
      <PagedTable
        what="customers"
        query={useQuery(customersQuery(props.page))}
        empty={<Empty title="There are no customers yet." />}
        caption="Customers"
        keyOf={(customer) => customer.id}
        columns={[
          {
            head: "Id",
            cell: ({ id }) => (
              <Link to="/customers/$customerId" params={{ customerId: id }}>
                {id}
              </Link>
            ),
          },
          { head: "Name", cell: ({ name }) => name },
          { head: "Number", cell: ({ number }) => number },
          { head: "Created", cell: ({ created }) => <Time at={created} /> },
        ]}
      />
      <NewCustomer />
    </>
  );
}

function NewCustomer() {
  const create = useCreateCustomer();
  const navigate = useNavigate();
  return (
    <Card title="New customer">
      <Form
        label="New customer"
        submit="Create the customer"
        isPending={create.isPending}
        error={create.error}
        act={(typed) => {
          create.mutate(
            { name: typed("name") ?? "", ...given({ id: typed("id") }) },
            {
              onSuccess: ({ id: customerId }) =>
                void navigate({ to: "/customers/$customerId", params: { customerId } }),
            },
          );
        }}
      >
        <div className="fields">
          <Field label="Name" name="name" required maxLength={128} />
          <Field
            label="Id"
            name="id"
            maxLength={64}
            pattern="[A-Za-z0-9._\-]+"
            title="Letters, digits, dots, underscores and dashes"
            hint="chosen by the service if it is left empty"
          />
        </div>
      </Form>
    </Card>
  );
}

export function StrangersPage(props: { page: number }) {
  return (
    <Page
      title="Unknown senders"
      lead="Senders whose messages belong to no device of any customer."
    >
      <ForOperator>
        <Strangers page={props.page} />
      </ForOperator>
    </Page>
  );
}

function Strangers(props: { page: number }) {
  return (
    <PagedTable
      what="unknown senders"
      query={useQuery(strangersQuery(props.page))}
      empty={<Empty title="None since the start of the service." />}
      caption="Unknown senders"
      keyOf={({ address, endpoint, operation }) => `${address} ${endpoint ?? ""} ${operation}`}
      columns={[
        { head: "Address", cell: ({ address }) => address },
        { head: "Endpoint", cell: ({ endpoint }) => endpoint ?? "—" },
        { head: "Sent", cell: ({ protocol, operation }) => `${protocol} ${operation}` },
        { head: "Answer", cell: ({ answer }) => answer ?? "none" },
        { head: "Messages", cell: ({ count }) => count },
        { head: "Last", cell: ({ lastSeen }) => <Age at={lastSeen} /> },
      ]}
    />
  );
}
