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

const ofCustomer = "/management-api/v1/sms/wakeup";
const ofDevice = "/management-api/v1/devices/{device}/wakeup";

const at = (device: string) => ({ params: { path: { device } } });

/** The message that wakes a device, or those of the customer that have none of their own; null if there is none. */
export const wakeUpQuery = (device: string | undefined) =>
  queryOptions({
    queryKey: ["wake-up", device],
    queryFn: () =>
      device === undefined
        ? bodyIfAny(api.GET(ofCustomer))
        : bodyIfAny(api.GET(ofDevice, at(device))),
  });

/** Sets the message, or removes it. */
export function useSetWakeUp(device: string | undefined) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["NewWakeUpMessage"] | null): Promise<unknown> => {
      if (device === undefined) {
        return body === null
          ? bodyOf(api.DELETE(ofCustomer))
          : bodyOf(api.PUT(ofCustomer, { body }));
      }
      return body === null
        ? bodyOf(api.DELETE(ofDevice, at(device)))
        : bodyOf(api.PUT(ofDevice, { ...at(device), body }));
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["wake-up", device] }),
  });
}
