// Firmware: the campaigns, and the images that they give to devices.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";

import type { Schemas } from "../api/client";
import { useScope } from "../session/query";
import { Field, Form, Refused } from "../ui/forms";
import { PagedTable } from "../ui/PagedTable";
import { Badge, Card, type Column, ConfirmButton, Page } from "../ui/parts";
import { given } from "../ui/search";
import { Empty, Scoped } from "../ui/states";
import { Age } from "../ui/Time";
import { campaignsQuery, imagesQuery, useRemoveImage, useUpload } from "./query";
import { type Campaign, sizeText, states } from "./words";

function FirmwarePage(props: { actions?: ReactNode; children: ReactNode }) {
  return (
    <Page title="Firmware" actions={props.actions}>
      <Scoped scope="devices:read">
        <nav className="tabs" aria-label="Views of firmware">
          <Link to="/firmware" activeOptions={{ exact: true, includeSearch: false }}>
            Campaigns
          </Link>
          <Link to="/firmware/images" activeOptions={{ includeSearch: false }}>
            Images
          </Link>
        </nav>
        {props.children}
      </Scoped>
    </Page>
  );
}

export function CampaignsPage(props: { page: number }) {
  const mayWrite = useScope("devices:write");
  return (
    <FirmwarePage
      actions={
        mayWrite && (
          <Link to="/new-campaign" search={{}}>
            New campaign
          </Link>
        )
      }
    >
      <PagedTable
        what="campaigns"
        query={useQuery(campaignsQuery(props.page))}
        empty={
          <Empty title="There are no campaigns.">
            Upload an image, and give it to the <Link to="/devices">devices</Link> that you select.
          </Empty>
        }
        caption="Campaigns, newest first"
        keyOf={({ id }) => id}
        columns={campaignColumns}
      />
    </FirmwarePage>
  );
}

export function StateBadge({ state }: { state: Campaign["state"] }) {
  const [tone, label] = states[state];
  return <Badge tone={tone}>{label}</Badge>;
}

const campaignColumns: Column<Campaign>[] = [
  {
    head: "Created",
    cell: ({ id, created }) => (
      <Link to="/firmware/campaigns/$campaignId" params={{ campaignId: id }}>
        <Age at={created} />
      </Link>
    ),
  },
  { head: "State", cell: ({ state }) => <StateBadge state={state} /> },
  { head: "Devices", cell: ({ devices }) => devices },
  { head: "Succeeded", cell: ({ counts }) => counts.SUCCEEDED },
  { head: "Failed", cell: ({ counts }) => counts.FAILED },
  { head: "Skipped", cell: ({ counts }) => counts.SKIPPED },
];

export function ImagesPage(props: { page: number }) {
  const mayWrite = useScope("devices:write");
  return (
    <FirmwarePage>
      {mayWrite && <UploadForm />}
      <PagedTable
        what="images"
        query={useQuery(imagesQuery(props.page))}
        empty={<Empty title="There are no images." />}
        caption="Images, newest first"
        keyOf={({ id }) => id}
        columns={mayWrite ? [...imageColumns, removeColumn] : imageColumns}
      />
    </FirmwarePage>
  );
}

/** What an image is called. */
export function imageName({ name, version, id }: Schemas["FirmwareImage"]): string {
  return [name, version].filter(Boolean).join(" ") || id;
}

const imageColumns: Column<Schemas["FirmwareImage"]>[] = [
  { head: "Image", cell: imageName },
  { head: "Size", cell: ({ size }) => sizeText(size) },
  {
    head: "SHA-256",
    cell: ({ sha256 }) => <code className="clip">{sha256}</code>,
  },
  { head: "Uploaded", cell: ({ created }) => <Age at={created} /> },
];

const removeColumn: Column<Schemas["FirmwareImage"]> = {
  head: "Remove",
  cell: (image) => <RemoveButton image={image} />,
};

function RemoveButton({ image }: { image: Schemas["FirmwareImage"] }) {
  const remove = useRemoveImage();
  return (
    <>
      <ConfirmButton
        label="Remove"
        title={`Remove ${imageName(image)}?`}
        confirm="Remove the image"
        disabled={remove.isPending}
        act={() => remove.mutate(image.id)}
      >
        <p>No further campaign can use it. Campaigns that have ended stay.</p>
      </ConfirmButton>
      <Refused error={remove.error} />
    </>
  );
}

function UploadForm() {
  const { upload, sentBytes } = useUpload();
  const stop = useRef<AbortController>(undefined);
  // Whoever leaves the view stops the upload, which leaves nothing at the service.
  useEffect(() => () => stop.current?.abort(), []);
  const size = upload.variables?.file.size ?? 0;
  return (
    <Card title="Upload an image">
      <Form
        label="Upload an image"
        submit="Upload"
        isPending={upload.isPending}
        error={upload.error}
        done={upload.data !== undefined && `${imageName(upload.data)} is uploaded.`}
        act={(typed, form) => {
          const file = new FormData(form).get("file");
          if (!(file instanceof File)) return;
          stop.current = new AbortController();
          const named = given({ name: typed("name"), version: typed("version") });
          upload.mutate(
            { file, ...named, stop: stop.current.signal },
            { onSuccess: () => form.reset() },
          );
        }}
      >
        <div className="fields">
          <Field label="File" name="file" type="file" required disabled={upload.isPending} />
          <Field label="Name" name="name" maxLength={128} />
          <Field label="Version" name="version" maxLength={128} />
        </div>
      </Form>
      {upload.isPending && (
        <div className="row">
          <progress max={Math.max(size, 1)} value={sentBytes} aria-label="Uploaded bytes" />
          <span className="muted small">
            {sizeText(sentBytes)} of {sizeText(size)}
          </span>
          <button type="button" onClick={() => stop.current?.abort()}>
            Stop
          </button>
        </div>
      )}
    </Card>
  );
}
