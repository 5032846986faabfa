// Creates a campaign for the devices that were selected, or for all that match a filter.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { type AskedSearch, askedOf } from "../jobs/asked";
import { AskedDevices } from "../jobs/AskedDevices";
import { Choice, Field, Form } from "../ui/forms";
import { Card, Page } from "../ui/parts";
import { Loaded, Scoped } from "../ui/states";
import { imageName } from "./FirmwarePages";
import { campaignOf } from "./newCampaign";
import { newestImagesQuery, useCreateCampaign } from "./query";
import { methods, sizeText } from "./words";

export function NewCampaignPage({ search }: { search: AskedSearch }) {
  return (
    <Page title="New campaign">
      <Scoped scope="devices:write">
        <AskedDevices asked={askedOf(search)} />
        <NewCampaign search={search} />
      </Scoped>
    </Page>
  );
}

function NewCampaign({ search }: { search: AskedSearch }) {
  const create = useCreateCampaign();
  const navigate = useNavigate();
  return (
    <Card title="Firmware">
      <p className="muted">
        The devices begin as soon as the campaign is created, unless it says otherwise. Select
        others in the list of <Link to="/devices">devices</Link>.
      </p>
      <Form
        label="New campaign"
        submit="Create the campaign"
        isPending={create.isPending}
        error={create.error}
        act={(typed) =>
          create.mutate(campaignOf(askedOf(search), typed), {
            onSuccess: (campaignId) =>
              void navigate({ to: "/firmware/campaigns/$campaignId", params: { campaignId } }),
          })
        }
      >
        <ImageFields />
        <div className="fields">
          <Choice label="Method" name="method" options={methods} />
          <Field
            label="Devices at a time"
            name="concurrency"
            type="number"
            min={1}
            max={10_000}
            defaultValue="10"
            required
          />
          <Field
            label="Begin within a minute"
            name="ratePerMinute"
            type="number"
            min={1}
            placeholder="no limit"
          />
          <Field
            label="Further tries"
            name="retries"
            type="number"
            min={0}
            max={10}
            defaultValue="0"
          />
          <Field
            label="Canary, in percent"
            name="canaryPercent"
            type="number"
            min={1}
            max={100}
            hint="so many devices end before the others begin"
          />
          <Field
            label="Halt at failures, in percent"
            name="haltAtFailedPercent"
            type="number"
            min={1}
            max={100}
          />
          <Field label="Not before" name="notBefore" type="datetime-local" />
          <Field
            label="Ends at"
            name="notAfter"
            type="datetime-local"
            hint="by default after 14 days"
          />
        </div>
      </Form>
    </Card>
  );
}

const elsewhere = "";

function ImageFields() {
  const query = useQuery(newestImagesQuery);
  const [chosen, choose] = useState<string>();
  return (
    <Loaded what="images" query={query}>
      {({ items }) => {
        const image = chosen ?? items[0]?.id ?? elsewhere;
        return (
          <div className="fields">
            <Choice
              label="Image"
              name="imageId"
              value={image}
              onChange={(event) => choose(event.target.value)}
              options={[
                ...items.map((it) => [it.id, `${imageName(it)}, ${sizeText(it.size)}`] as const),
                [elsewhere, "From a URI"],
              ]}
            />
            {image === elsewhere && (
              <Field
                label="URI"
                name="url"
                required
                maxLength={255}
                pattern="(https?|coaps?)://.+"
                title="An address with http, https, coap or coaps"
                placeholder="https://example.com/meter-1.5.0.bin"
              />
            )}
          </div>
        );
      }}
    </Loaded>
  );
}
