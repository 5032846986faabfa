// The SMS console of a device: what was said in both directions, and what to say next.
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";

import type { Schemas } from "../api/client";
import { WithDevice } from "../devices/DevicePage";
import { useScope } from "../session/query";
import { Choice, Form, Refused, TextArea } from "../ui/forms";
import { LoadMore } from "../ui/LoadMore";
import { useNewestFirst } from "../ui/newest";
import { Badge, Card, ConfirmButton } from "../ui/parts";
import { Empty, Loaded, Notice, Scoped, type Tone } from "../ui/states";
import { Time } from "../ui/Time";
import { partsMax, sizeOf } from "./parts";
import { conversation, useCancelSms, useSendSms } from "./query";
import { SourceField } from "./SourceField";
import { WakeUp } from "./WakeUp";

type Sms = Schemas["Sms"];
type Sent = Schemas["SmsToDevice"];

export function DeviceSms(props: { id: string }) {
  return (
    <Scoped scope="sms:read">
      <WithDevice id={props.id}>{(device) => <Console device={device} />}</WithDevice>
    </Scoped>
  );
}

function Console({ device }: { device: Schemas["InspectedDevice"] }) {
  const { result, query } = useNewestFirst(conversation(device.iccid));
  const mayWrite = useScope("sms:write");
  const source = result.data?.find(isSent)?.source_address;
  return (
    <>
      <Card title="Conversation">
        <Loaded what="SMS" query={result}>
          {(latest) =>
            latest.length === 0 ? (
              <Empty title="No SMS yet.">SMS are kept for 14 days.</Empty>
            ) : (
              <>
                <LoadMore label="Load older SMS" query={query} />
                <Conversation of={latest} />
              </>
            )
          }
        </Loaded>
      </Card>
      {mayWrite && (
        <Card title="Send an SMS">
          {device.msisdn === undefined ? (
            <Notice tone="calm">
              <p>The device has no MSISDN, so the network does not know where to send an SMS.</p>
              <Link to="/devices/$deviceId/settings" params={{ deviceId: device.deviceId }}>
                Give it one
              </Link>
            </Notice>
          ) : (
            <Composer iccid={device.iccid} source={source} to={device.msisdn} />
          )}
        </Card>
      )}
      <WakeUp device={device.deviceId} />
    </>
  );
}

/** SMS in the order of time; the latest one is in sight. */
function Conversation({ of: latest }: { of: Sms[] }) {
  const list = useRef<HTMLOListElement>(null);
  const last = latest[0]?.id;
  useEffect(() => {
    list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [last]);
  return (
    <ol ref={list} className="conversation" tabIndex={0} aria-label="SMS, oldest first">
      {latest.toReversed().map((sms) => (
        <Bubble key={sms.id} sms={sms} />
      ))}
    </ol>
  );
}

function isSent(sms: Sms): sms is Sent {
  return "status" in sms;
}

function Bubble({ sms }: { sms: Sms }) {
  return (
    <li className={isSent(sms) ? "bubble sent" : "bubble"}>
      <div className="small muted">
        {isSent(sms) ? `from ${sms.source_address} to the device` : "from the device"}
        {" · "}
        <Time at={sms.submit_date} />
      </div>
      <p className="sms-text">{sms.payload}</p>
      {isSent(sms) ? <Delivery sms={sms} /> : <Received parts={sms.multi_part_info} />}
    </li>
  );
}

function Received({ parts }: { parts: Schemas["ReceivedParts"] }) {
  if (parts.total === 1) return null;
  const missing = parts.total - parts.received.length;
  return (
    <div className="small muted">
      {parts.total} parts{missing > 0 && `, ${missing} of them not received`}
    </div>
  );
}

const statuses: Record<Schemas["SmsStatus"]["status"], [Tone, string]> = {
  PENDING: ["calm", "Pending"],
  "IN PROGRESS": ["busy", "In progress"],
  BUFFERED: ["warn", "Buffered by the network"],
  DELIVERED: ["good", "Delivered"],
  FAILED: ["bad", "Failed"],
  EXPIRED: ["bad", "Expired"],
  CANCELED: ["calm", "Cancelled"],
};

function Delivery({ sms }: { sms: Sent }) {
  const cancel = useCancelSms(sms.iccid);
  const mayWrite = useScope("sms:write");
  const [tone, label] = statuses[sms.status.status];
  const isOpen = sms.status.status === "PENDING" || sms.status.status === "BUFFERED";
  return (
    <div className="row tight">
      <Badge tone={tone}>{label}</Badge>
      {sms.final_date !== undefined && (
        <span className="small muted">
          <Time at={sms.final_date} />
        </span>
      )}
      {sms.reason !== undefined && <span className="small">{sms.reason}</span>}
      {sms.multi_part_info.total > 1 && (
        <span className="small muted">{sms.multi_part_info.total} parts</span>
      )}
      {isOpen && mayWrite && (
        <ConfirmButton
          label="Cancel"
          title="Cancel this SMS?"
          confirm="Cancel the SMS"
          disabled={cancel.isPending}
          act={() => cancel.mutate(sms.id)}
        >
          <p>
            {sms.status.status === "PENDING"
              ? "It will not be sent."
              : "The network is told to delete it from its buffer. It may be delivered nevertheless."}
          </p>
        </ConfirmButton>
      )}
      <Refused error={cancel.error} />
    </div>
  );
}

const validities = [
  ["", "The default"],
  ["60", "1 hour"],
  ["1440", "1 day"],
  ["10080", "7 days"],
] as const;

function Composer(props: { iccid: string; source: string | undefined; to: string }) {
  const [text, setText] = useState("");
  const send = useSendSms(props.iccid);
  const size = sizeOf(text);
  return (
    <Form
      label="Send an SMS"
      submit="Send"
      isPending={send.isPending}
      error={send.error}
      act={(typed) => {
        const minutes = Number(typed("validity") ?? 0);
        const expiry = new Date(Date.now() + minutes * 60_000 - 1_000);
        send.mutate(
          {
            source_address: typed("source") ?? "",
            payload: text,
            ...(minutes === 0 ? {} : { expiry_date: spaced(expiry) }),
          },
          { onSuccess: () => setText("") },
        );
      }}
    >
      <div className="row fields">
        <SourceField key={props.source} value={props.source} />
        <Choice label="Valid for" name="validity" options={validities} />
      </div>
      <TextArea
        label={`Text to ${props.to}`}
        name="payload"
        required
        value={text}
        onChange={(event) => setText(event.target.value)}
        hint={
          <span className={size.parts > partsMax ? "fault" : ""}>
            {size.alphabet} · {size.units} characters · {size.parts}{" "}
            {size.parts === 1 ? "SMS" : "parts"} · {size.left} left
            {size.parts > partsMax && ` · at most ${partsMax} parts`}
          </span>
        }
      />
    </Form>
  );
}

/** A time as the SMS routes take it. */
function spaced(time: Date): string {
  return time.toISOString().slice(0, 19).replace("T", " ");
}
