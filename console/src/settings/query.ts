// The settings of a customer, and the objects that it defines.
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { type Schemas, api, bodyOf } from "../api/client";

type Platform = "signalbox";

/** The path has the platform that the service was given. */
const at = (platform: string) => ({ platform: platform as Platform });

export const settingsQuery = (platform: string) =>
  queryOptions({
    queryKey: ["settings", platform],
    queryFn: () =>
      bodyOf(api.GET("/management-api/v1/settings/{platform}", { params: { path: at(platform) } })),
  });

/** Enables or disables a setting. */
export function useChangeSetting(platform: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, state }: Pick<Schemas["Setting"], "name" | "state">) =>
      bodyOf(
        api.PATCH("/management-api/v1/settings/{platform}/{setting}", {
          params: { path: { ...at(platform), setting: name } },
          body: { state },
        }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: ["settings"] }),
  });
}

const presence = "/management-api/v1/presence";

/** How long devices may be silent before they are offline. */
export const presenceQuery = queryOptions({
  queryKey: ["settings", "presence"],
  queryFn: () => bodyOf(api.GET(presence)),
});

/** Sets how many seconds devices may be silent, or that only their registration says so. */
export function useSetSilence() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (offlineAfter: number | null) =>
      bodyOf(api.PATCH(presence, { body: { offlineAfter } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: presenceQuery.queryKey }),
  });
}

/** Keeps the definition of an object, in the XML of OMA. */
export function useDefine() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (file: File) => {
      const body = await file.text();
      const call = api.PUT("/management-api/v1/lwm2m/objects", {
        body,
        bodySerializer: () => body,
        headers: { "content-type": "application/xml" },
      });
      return bodyOf(call);
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["definitions"] }),
  });
}

/** Removes the definition of an object. */
export function useRemoveDefinition() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ objectId: object, version }: Schemas["ObjectDefinition"]) =>
      bodyOf(
        api.DELETE("/management-api/v1/lwm2m/objects/{object}/{version}", {
          params: { path: { object, version } },
        }),
      ),
    onSettled: () => queries.invalidateQueries({ queryKey: ["definitions"] }),
  });
}
