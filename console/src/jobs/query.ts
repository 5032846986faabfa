// Requests to many devices: created at once for those that are named, as a job for those that match.
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { type Schemas, api, bodyOf } from "../api/client";
import type { NewRequest } from "../requests/newRequest";
import type { Asked } from "./asked";

const actions = "/management-api/v1/integrate/devices/actions";
const pageSize = 20;

export const jobsQuery = (page: number) =>
  queryOptions({
    queryKey: ["jobs", page],
    queryFn: () =>
      bodyOf(api.GET("/management-api/v1/jobs", { params: { query: { page, pageSize } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });

export const jobQuery = (job: string) =>
  queryOptions({
    queryKey: ["jobs", "one", job],
    queryFn: () => bodyOf(api.GET("/management-api/v1/jobs/{job}", { params: { path: { job } } })),
    refetchInterval: ({ state: { data } }) => (data?.state === "RUNNING" ? 1_000 : false),
  });

export const jobDevicesQuery = (job: string, page: number, isRunning: boolean) =>
  queryOptions({
    // With the end of the job the devices are read once more.
    queryKey: ["jobs", "one", job, "devices", page, isRunning],
    queryFn: () => {
      const params = { path: { job }, query: { page, pageSize } };
      return bodyOf(api.GET("/management-api/v1/jobs/{job}/devices", { params }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: isRunning ? 2_000 : false,
  });

/** Cancels what a job has not done yet. */
export function useCancelJob() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (job: string) =>
      bodyOf(api.DELETE("/management-api/v1/jobs/{job}", { params: { path: { job } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["jobs"] }),
  });
}

/** Counts the devices that match, and creates nothing. */
export function useDryRun() {
  return useMutation({
    mutationFn: async (all: { request: NewRequest; filter: Schemas["DeviceFilter"] }) =>
      // It is a job only without the dry run.
      (await asked(all.request, { filter: all.filter, dryRun: true })) as Schemas["JobDryRun"],
  });
}

/** Creates requests: the outcome of each device, or the job that creates them. */
export function useAskMany() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (all: { request: NewRequest; asked: Asked }) =>
      (await asked(all.request, all.asked)) as Schemas["ActionsAccepted"] | Schemas["JobCreated"],
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ["jobs"] }),
        queries.invalidateQueries({ queryKey: ["requests"] }),
      ]),
  });
}

function asked({ protocol, body }: NewRequest, whom: Asked & { dryRun?: boolean }) {
  switch (protocol) {
    case "LWM2M":
      return bodyOf(api.POST(`${actions}/LWM2M`, { body: { ...body, ...whom } }));
    case "COAP":
      return bodyOf(api.POST(`${actions}/COAP`, { body: { ...body, ...whom } }));
    case "UDP":
      return bodyOf(api.POST(`${actions}/UDP`, { body: { ...body, ...whom } }));
  }
}
