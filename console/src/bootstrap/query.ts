// What devices are given at their bootstrap: by default, or one device instead.
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { type Schemas, api, bodyIfAny, bodyOf } from "../api/client";

export type Configuration = Schemas["BootstrapConfiguration"];
export type Server = Configuration["servers"][number];

const ofCustomer = "/management-api/v1/bootstrap";
const ofDevice = "/management-api/v1/devices/{device}/bootstrap";

const at = (device: string) => ({ params: { path: { device } } });

/** The configuration of a device, or that of the customer; null if there is none. */
export const configurationQuery = (device: string | undefined) =>
  queryOptions({
    queryKey: ["bootstrap", device],
    queryFn: () =>
      device === undefined
        ? bodyIfAny(api.GET(ofCustomer))
        : bodyIfAny(api.GET(ofDevice, at(device))),
  });

/** Sets a configuration, or removes it. */
export function useConfigure(device: string | undefined) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["NewBootstrapConfiguration"] | null): Promise<unknown> => {
      if (device === undefined) {
        return body === null
          ? bodyOf(api.DELETE(ofCustomer))
          : bodyOf(api.PUT(ofCustomer, { body }));
      }
      return body === null
        ? bodyOf(api.DELETE(ofDevice, at(device)))
        : bodyOf(api.PUT(ofDevice, { ...at(device), body }));
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["bootstrap", device] }),
  });
}
