// The list of requests, newest first.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { deviceColumn } from "../devices/DeviceLink";
import { useScope } from "../session/query";
import { Filters, SearchField } from "../ui/Filters";
import { PagedTable } from "../ui/PagedTable";
import { type Column, Page, Select } from "../ui/parts";
import { type Search, given, page, text, word } from "../ui/search";
import { Empty, Scoped } from "../ui/states";
import { Age } from "../ui/Time";
import { CancelButton, StatusBadge, summaryOf } from "./parts";
import { type RequestSearch, requestsQuery } from "./query";
import { lists, orders, protocols, statuses } from "./words";

export function readRequestSearch(search: Search): RequestSearch {
  return given({
    list: word(search, "list", lists),
    sort: word(search, "sort", orders),
    status: word(search, "status", statuses),
    protocol: word(search, "protocol", protocols),
    deviceId: text(search, "deviceId"),
    page: page(search),
  });
}

export const requestColumns: Column<Schemas["ActionRequest"]>[] = [
  {
    head: "Request",
    cell: (request) => (
      <Link to="/requests/$requestId" params={{ requestId: request.id }}>
        {summaryOf(request.requestData)}
      </Link>
    ),
  },
  { head: "Status", cell: (request) => <StatusBadge status={request.status} /> },
  {
    head: "Result",
    cell: (request) => (
      <span className="clip">
        {request.resultData?.errorMessage ?? request.resultData?.payload ?? "—"}
      </span>
    ),
  },
  { head: "Created", cell: (request) => <Age at={request.created} /> },
];

/** The column of those who may cancel. */
export const cancelColumn: Column<Schemas["ActionRequest"]> = {
  head: "Cancel",
  cell: (request) => <CancelButton request={request} />,
};

export function RequestsPage(props: { search: RequestSearch }) {
  return (
    <Page
      title="Requests"
      actions={
        <>
          <Link to="/jobs">Jobs</Link>
          <Link to="/schedules">Schedules</Link>
        </>
      }
    >
      <Scoped scope="actions:read">
        <RequestFilters search={props.search} />
        <RequestList search={props.search} columns={[deviceColumn, ...requestColumns]} />
      </Scoped>
    </Page>
  );
}

function RequestFilters(props: { search: RequestSearch }) {
  const navigate = useNavigate();
  const show = (change: { [K in keyof RequestSearch]?: RequestSearch[K] | undefined }) => {
    const search = given({ ...props.search, page: undefined, ...change });
    void navigate({ to: "/requests", search });
  };
  return (
    <Filters search={(typed) => show({ deviceId: typed("device") })}>
      <SearchField label="Device id" name="device" value={props.search.deviceId} />
      <Select
        label="Status"
        any="Any status"
        options={statuses}
        value={props.search.status}
        choose={(status) => show({ status })}
      />
      <Select
        label="Protocol"
        any="Any protocol"
        options={protocols}
        value={props.search.protocol}
        choose={(protocol) => show({ protocol })}
      />
      <Select
        label="List"
        any="All"
        options={lists}
        value={props.search.list}
        choose={(list) => show({ list })}
      />
      <Select
        label="Order"
        any="Newest first"
        options={orders}
        value={props.search.sort}
        choose={(sort) => show({ sort })}
      />
    </Filters>
  );
}

export function RequestList(props: {
  search: RequestSearch;
  columns: Column<Schemas["ActionRequest"]>[];
}) {
  const columns = useScope("actions:write") ? [...props.columns, cancelColumn] : props.columns;
  return (
    <PagedTable
      what="requests"
      query={useQuery(requestsQuery(props.search))}
      empty={
        <Empty title="No requests.">
          Requests are kept for 7 days. You create them at the resources of a device, or over the
          API.
        </Empty>
      }
      caption="Requests"
      columns={columns}
      keyOf={(request) => request.id}
    />
  );
}
