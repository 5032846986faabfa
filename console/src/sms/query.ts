// SMS: those of a SIM in both directions, and those that send and cancel one.
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { type Schemas, api, bodyIfAny, bodyOf } from "../api/client";
import { type NewestFirst, loadedKey } from "../ui/newest";

const path = "/management-api/v1/sims/{iccid}/sms";
const pageSize = 25;

const pageOf = (iccid: string, page: number) =>
  bodyOf(api.GET(path, { params: { path: { iccid }, query: { page, pageSize } } }));

type SmsPage = Awaited<ReturnType<typeof pageOf>>;

export const conversation = (iccid: string): NewestFirst<Schemas["Sms"], SmsPage, number> => ({
  queryKey: ["sms", iccid],
  read: (page = 1) => pageOf(iccid, page),
  behind: ({ page, pageAmount }) => (page < pageAmount ? page + 1 : undefined),
  idOf: ({ id }) => id,
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
    // It may be an older one.
    onSettled: () => queries.invalidateQueries({ queryKey: loadedKey(["sms", iccid]) }),
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
