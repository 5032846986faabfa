// Schedules: requests to devices that are created again and again.
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { type Schemas, api, bodyOf } from "../api/client";

const schedules = "/management-api/v1/schedules";
const one = `${schedules}/{schedule}` as const;

const at = (schedule: string) => ({ params: { path: { schedule } } });

export const schedulesQuery = (page: number) =>
  queryOptions({
    queryKey: ["schedules", page],
    queryFn: () => bodyOf(api.GET(schedules, { params: { query: { page, pageSize: 20 } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const scheduleQuery = (schedule: string) =>
  queryOptions({
    queryKey: ["schedules", "one", schedule],
    queryFn: () => bodyOf(api.GET(one, at(schedule))),
    refetchInterval: 5_000,
  });

/** Creates a schedule; its id is the result. */
export function useCreateSchedule() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (body: Schemas["NewSchedule"]) =>
      (await bodyOf(api.POST(schedules, { body }))).id,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["schedules"] }),
  });
}

/** Pauses a schedule, or continues it. */
export function useChangeSchedule(schedule: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (state: Schemas["ScheduleChange"]["state"]) =>
      bodyOf(api.PATCH(one, { ...at(schedule), body: { state } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["schedules"] }),
  });
}

/** Removes a schedule. */
export function useRemoveSchedule(schedule: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => bodyOf(api.DELETE(one, at(schedule))),
    onSuccess: () => {
      queries.removeQueries({ queryKey: ["schedules", "one", schedule] });
      return queries.invalidateQueries({ queryKey: ["schedules"] });
    },
  });
}
