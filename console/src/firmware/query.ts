// Firmware images, and the campaigns that give one of them to many devices.
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { type Schemas, CallFailure, api, bodyOf, failureOf, sign } from "../api/client";
import { isOver } from "./words";

const images = "/management-api/v1/firmware/images";
const campaigns = "/management-api/v1/firmware/campaigns";

const pageSize = 20;

export const imagesQuery = (page: number) =>
  queryOptions({
    queryKey: ["firmware", "images", page],
    queryFn: () => bodyOf(api.GET(images, { params: { query: { page, pageSize } } })),
    placeholderData: keepPreviousData,
  });

/** The images that a campaign can be created with: the newest ones. */
export const newestImagesQuery = queryOptions({
  queryKey: ["firmware", "images", "newest"],
  queryFn: () => bodyOf(api.GET(images, { params: { query: { pageSize: 100 } } })),
});

export const imageQuery = (image: string) =>
  queryOptions({
    queryKey: ["firmware", "images", "one", image],
    queryFn: () => bodyOf(api.GET(`${images}/{image}`, { params: { path: { image } } })),
    staleTime: Infinity,
  });

export const campaignsQuery = (page: number) =>
  queryOptions({
    queryKey: ["firmware", "campaigns", page],
    queryFn: () => bodyOf(api.GET(campaigns, { params: { query: { page, pageSize } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });

export const campaignQuery = (campaign: string) =>
  queryOptions({
    queryKey: ["firmware", "campaigns", "one", campaign],
    queryFn: () => bodyOf(api.GET(`${campaigns}/{campaign}`, { params: { path: { campaign } } })),
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && isOver(data.state) ? false : 2_000,
  });

export const campaignDevicesQuery = (campaign: string, page: number, hasEnded: boolean) =>
  queryOptions({
    // With the end of the campaign the devices are read once more.
    queryKey: ["firmware", "campaigns", "one", campaign, "devices", page, hasEnded],
    queryFn: () => {
      const params = { path: { campaign }, query: { page, pageSize } };
      return bodyOf(api.GET(`${campaigns}/{campaign}/devices`, { params }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: hasEnded ? false : 3_000,
  });

/** Creates a campaign; its id is the result. */
export function useCreateCampaign() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (body: Schemas["NewFirmwareCampaign"]) =>
      (await bodyOf(api.POST(campaigns, { body }))).id,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["firmware", "campaigns"] }),
  });
}

export type CampaignAct = "pause" | "resume" | "cancel";

/** Pauses, resumes or cancels a campaign. */
export function useCampaignAct(campaign: string) {
  const queries = useQueryClient();
  const params = { path: { campaign } };
  return useMutation({
    mutationFn: (act: CampaignAct) => {
      switch (act) {
        case "pause":
          return bodyOf(api.POST(`${campaigns}/{campaign}/pause`, { params }));
        case "resume":
          return bodyOf(api.POST(`${campaigns}/{campaign}/resume`, { params }));
        case "cancel":
          return bodyOf(api.POST(`${campaigns}/{campaign}/cancel`, { params }));
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["firmware", "campaigns"] }),
  });
}

/** Removes an image. */
export function useRemoveImage() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (image: string) =>
      bodyOf(api.DELETE(`${images}/{image}`, { params: { path: { image } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["firmware", "images"] }),
  });
}

/** An image that is to be uploaded. */
export interface Upload {
  file: File;
  name?: string;
  version?: string;
  stop: AbortSignal;
}

/** Uploads an image, and how many bytes of it are sent. */
export function useUpload() {
  const queries = useQueryClient();
  const [sentBytes, setSentBytes] = useState(0);
  const upload = useMutation({
    mutationFn: (wanted: Upload) => {
      setSentBytes(0);
      return uploaded(wanted, setSentBytes);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["firmware", "images"] }),
  });
  return { upload, sentBytes };
}

/** Only `XMLHttpRequest` tells how much of a body is sent. */
function uploaded(
  { file, stop, ...named }: Upload,
  progress: (bytes: number) => void,
): Promise<Schemas["FirmwareImage"]> {
  return new Promise((done, failed) => {
    const call = new XMLHttpRequest();
    call.open("POST", `/console/api${images}?${new URLSearchParams(named)}`);
    const headers = new Headers({ "content-type": "application/octet-stream" });
    sign(headers, "POST");
    headers.forEach((value, name) => call.setRequestHeader(name, value));
    call.responseType = "json";
    call.upload.onprogress = ({ loaded }) => progress(loaded);
    call.onload = () => {
      if (call.status === 201) done(call.response as Schemas["FirmwareImage"]);
      else failed(failureOf(call.status, call.response));
    };
    call.onerror = () => failed(new CallFailure(0, []));
    call.onabort = () => failed(new Error("the upload was stopped"));
    stop.addEventListener("abort", () => call.abort());
    call.send(file);
  });
}
