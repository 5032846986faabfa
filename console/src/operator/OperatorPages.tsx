// The views of the operator.
import { useQuery } from "@tanstack/react-query";

import { Pager } from "../ui/Pager";
import { DataTable, Page } from "../ui/parts";
import { Empty, ForOperator, Loaded } from "../ui/states";
import { Age, Time } from "../ui/Time";
import { customersQuery, strangersQuery } from "./query";

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
    <Loaded what="customers" query={useQuery(customersQuery(props.page))}>
      {({ items, page, pageAmount }) =>
        items.length === 0 ? (
          <Empty title="There are no customers yet.">
            Create one with <code>POST /operator-api/v1/customers</code>.
          </Empty>
        ) : (
          <>
            <DataTable
              caption="Customers"
              rows={items}
              keyOf={(customer) => customer.id}
              columns={[
                { head: "Id", cell: ({ id }) => id },
                { head: "Name", cell: ({ name }) => name },
                { head: "Number", cell: ({ number }) => number },
                { head: "Created", cell: ({ created }) => <Time at={created} /> },
              ]}
            />
            <Pager page={page} pages={pageAmount} />
          </>
        )
      }
    </Loaded>
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
    <Loaded what="unknown senders" query={useQuery(strangersQuery(props.page))}>
      {({ items, page, pageAmount }) =>
        items.length === 0 ? (
          <Empty title="None since the start of the service." />
        ) : (
          <>
            <DataTable
              caption="Unknown senders"
              rows={items}
              keyOf={({ address, endpoint, operation }) =>
                `${address} ${endpoint ?? ""} ${operation}`
              }
              columns={[
                { head: "Address", cell: ({ address }) => address },
                { head: "Endpoint", cell: ({ endpoint }) => endpoint ?? "—" },
                { head: "Sent", cell: ({ protocol, operation }) => `${protocol} ${operation}` },
                { head: "Answer", cell: ({ answer }) => answer ?? "none" },
                { head: "Messages", cell: ({ count }) => count },
                { head: "Last", cell: ({ lastSeen }) => <Age at={lastSeen} /> },
              ]}
            />
            <Pager page={page} pages={pageAmount} />
          </>
        )
      }
    </Loaded>
  );
}
