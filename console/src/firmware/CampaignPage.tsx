// One campaign: how far it is, what became of each device, and the ways to halt it.
import { useQuery } from "@tanstack/react-query";

import { deviceColumn } from "../devices/DeviceLink";
import { useScope } from "../session/query";
import { Refused } from "../ui/forms";
import { PagedTable } from "../ui/PagedTable";
import { Badge, Card, ConfirmButton, Facts, Page } from "../ui/parts";
import { Empty, Loaded, Notice, Scoped } from "../ui/states";
import { Age, Time } from "../ui/Time";
import { StateBadge, imageName } from "./FirmwarePages";
import { campaignDevicesQuery, campaignQuery, imageQuery, useCampaignAct } from "./query";
import {
  type Campaign,
  type CampaignDevice,
  deviceStates,
  isOver,
  methodName,
  sizeText,
} from "./words";

export function CampaignPage(props: { id: string; page: number }) {
  return (
    <Page title="Campaign" lead={<code className="small">{props.id}</code>}>
      <Scoped scope="devices:read">
        <Loaded what="campaign" query={useQuery(campaignQuery(props.id))}>
          {(campaign) => (
            <>
              <div className="grid">
                <Progress campaign={campaign} />
                <Rules campaign={campaign} />
              </div>
              <Devices campaign={campaign} page={props.page} />
            </>
          )}
        </Loaded>
      </Scoped>
    </Page>
  );
}

function Progress({ campaign }: { campaign: Campaign }) {
  const { state, counts, devices } = campaign;
  const ended = counts.SUCCEEDED + counts.FAILED + counts.SKIPPED;
  return (
    <Card title="Progress" actions={<StateBadge state={state} />}>
      <progress max={Math.max(devices, 1)} value={ended} aria-label="Devices that have ended" />
      <p role="status">
        {ended} of {devices} devices have ended.
      </p>
      {state === "HALTED" && (
        <Notice tone="bad">
          Too many devices failed, so no further one begins. Whoever resumes the campaign accepts
          the failures until now.
        </Notice>
      )}
      <Facts
        of={Object.entries(deviceStates).map(([name, [, label]]) => [
          label,
          counts[name as CampaignDevice["state"]],
        ])}
      />
      <Acts campaign={campaign} />
    </Card>
  );
}

function Acts({ campaign: { id, state } }: { campaign: Campaign }) {
  const act = useCampaignAct(id);
  const mayWrite = useScope("devices:write");
  if (!mayWrite || isOver(state)) return null;
  return (
    <>
      <div className="row">
        {state === "RUNNING" ? (
          <button type="button" disabled={act.isPending} onClick={() => act.mutate("pause")}>
            Pause
          </button>
        ) : (
          <ConfirmButton
            look="primary"
            label="Resume"
            title="Resume this campaign?"
            confirm="Resume it"
            disabled={act.isPending}
            act={() => act.mutate("resume")}
          >
            <p>Further devices begin. Failures until now no longer count.</p>
          </ConfirmButton>
        )}
        <ConfirmButton
          label="Cancel"
          title="Cancel this campaign?"
          confirm="Cancel the campaign"
          disabled={act.isPending}
          act={() => act.mutate("cancel")}
        >
          <p>
            No further device begins, and those that are under way are not told to install the
            image. What is installed stays.
          </p>
        </ConfirmButton>
      </div>
      <Refused error={act.error} />
    </>
  );
}

function Rules({ campaign }: { campaign: Campaign }) {
  const { imageId, url, notBefore } = campaign;
  const percent = (share: number | undefined) => share && `${share} %`;
  return (
    <Card title="Rules">
      <Facts
        of={[
          ["Image", imageId === undefined ? url : <ImageName key="" id={imageId} />],
          ["Method", methodName(campaign.method)],
          ["At a time", campaign.concurrency],
          ["Begin within a minute", campaign.ratePerMinute],
          ["Further tries", campaign.retries],
          ["Canary", percent(campaign.canaryPercent)],
          ["Halts at failed", percent(campaign.haltAtFailedPercent)],
          ["Not before", notBefore && <Time key="" at={notBefore} />],
          ["Ends at", <Time key="" at={campaign.notAfter} />],
          ["Created", <Time key="" at={campaign.created} />],
        ]}
      />
    </Card>
  );
}

/** The image may have been removed since. */
function ImageName({ id }: { id: string }) {
  const { data } = useQuery(imageQuery(id));
  return data === undefined ? id : `${imageName(data)}, ${sizeText(data.size)}`;
}

function Devices(props: { campaign: Campaign; page: number }) {
  const { id, state } = props.campaign;
  return (
    <Card title="Devices">
      <PagedTable
        what="devices"
        query={useQuery(campaignDevicesQuery(id, props.page, isOver(state)))}
        empty={<Empty title="No device matched." />}
        caption="Devices in the order in which they begin"
        keyOf={({ deviceId }) => deviceId}
        columns={[
          deviceColumn,
          {
            head: "State",
            cell: (device: CampaignDevice) => {
              const [tone, label] = deviceStates[device.state];
              return <Badge tone={tone}>{label}</Badge>;
            },
          },
          { head: "Transferred", cell: ({ bytes }) => sizeText(bytes) },
          { head: "Reason", cell: ({ reason }) => reason ?? "—" },
          { head: "Changed", cell: ({ updated }) => <Age at={updated} /> },
        ]}
      />
    </Card>
  );
}
