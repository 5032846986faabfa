// What changes a device: its properties, its keys, its end.
import { useMutation, useQueryClient } from "@tanstack/react-query";

import { type Schemas, api, bodyOf } from "../api/client";

const one = "/management-api/v1/devices/{device}";
const at = (device: string) => ({ params: { path: { device } } });

/** Creates a device; its id is the result. */
export function useCreateDevice() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (body: Schemas["NewDevice"]) =>
      (await bodyOf(api.POST("/management-api/v1/devices", { body }))).deviceId,
    onSettled: () => queries.invalidateQueries({ queryKey: ["devices"] }),
  });
}

/** Changes properties of a device; how it is then is the result. */
export function useAmendDevice(device: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["AmendedDevice"]) => bodyOf(api.PATCH(one, { ...at(device), body })),
    onSuccess: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ["device", device] }),
        queries.invalidateQueries({ queryKey: ["devices"] }),
      ]),
  });
}

/** What can be done to the keys of a device. */
export interface KeyChanges {
  setKey: (body: Schemas["DeviceKey"]) => Promise<unknown>;
  removeKey: () => Promise<unknown>;
  setPublicKey: (body: Schemas["DevicePublicKey"]) => Promise<unknown>;
  removePublicKey: () => Promise<unknown>;
}

const changesOf = (device: string): KeyChanges => ({
  setKey: (body) => bodyOf(api.POST(`${one}/psk`, { ...at(device), body })),
  removeKey: () => bodyOf(api.DELETE(`${one}/psk`, at(device))),
  setPublicKey: (body) => bodyOf(api.PUT(`${one}/public-key`, { ...at(device), body })),
  removePublicKey: () => bodyOf(api.DELETE(`${one}/public-key`, at(device))),
});

/** Changes the keys of a device in one of the ways that there are. */
export function useChangeKeys(device: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (change: (changes: KeyChanges) => Promise<unknown>) => change(changesOf(device)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["device", device] }),
  });
}

/** Removes a device. */
export function useRemoveDevice(device: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => bodyOf(api.DELETE(one, at(device))),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["devices"] }),
  });
}

/** Has the service make a pre-shared key, which the result shows once. */
export function useGenerateKey(device: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => bodyOf(api.POST(`${one}/psk/generate`, { ...at(device), body: {} })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["device", device] }),
    // The key leaves the memory of the page with its view.
    gcTime: 0,
  });
}
