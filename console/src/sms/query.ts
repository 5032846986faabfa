// SMS: those of a SIM in both directions, and those that send and cancel one.
import {
  infiniteQueryOptions,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";

import { type Schemas, api, bodyIfAny, bodyOf } from "../api/client";

const path = "/management-api/v1/sims/{iccid}/sms";
const pageSize = 25;

export const smsQuery = (iccid: string) =>
  infiniteQueryOptions({
    queryKey: ["sms", iccid],
    queryFn: ({ pageParam: page }) =>
      bodyOf(api.GET(path, { params: { path: { iccid }, query: { page, pageSize } } })),
    initialPageParam: 1,
    getNextPageParam: ({ page, pageAmount }) => (page < pageAmount ? page + 1 : undefined),
    refetchInterval: 3_000,
  });

/** Sends an SMS. */
export function useSendSms(iccid: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["NewSms"]) =>
      bodyOf(api.POST(path, { params: { path: { iccid } }, body })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["sms", iccid] }),
  });
}

/** Cancels an SMS that was not delivered yet. */
export function useCancelSms(iccid: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (sms: number) =>
      bodyOf(api.DELETE(`${path}/{sms}`, { params: { path: { iccid, sms } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["sms", iccid] }),
  });
}

const wakeUp = "/management-api/v1/sms/wakeup";

export const wakeUpQuery = queryOptions({
  queryKey: ["sms", "wake-up"],
  // Without a message there is none to show.
  queryFn: () => bodyIfAny(api.GET(wakeUp)),
});

/** Sets the message that wakes devices, or removes it. */
export function useSetWakeUp() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["NewWakeUpMessage"] | null): Promise<unknown> =>
      body === null ? bodyOf(api.DELETE(wakeUp)) : bodyOf(api.PUT(wakeUp, { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: wakeUpQuery.queryKey }),
  });
}
