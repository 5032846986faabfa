// The message that wakes a device where a request asks for it: that of the customer, or of one device.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import type { Schemas } from "../api/client";
import { useScope } from "../session/query";
import { Choice, Field, Form, Refused } from "../ui/forms";
import { Card, ConfirmButton, Facts } from "../ui/parts";
import { Empty, Loaded } from "../ui/states";
import type { Typed } from "../ui/typed";
import { useSetWakeUp, wakeUpQuery } from "./query";
import { SourceField } from "./SourceField";

const types = [
  ["REGISTRATION_UPDATE_TRIGGER", "Registration update"],
  ["TEXT", "Text"],
  ["DATA", "Data"],
] as const satisfies readonly (readonly [Schemas["WakeUpMessage"]["type"], string])[];

/** The message of a device, or that of the customer. */
export function WakeUp({ device }: { device?: string }) {
  const mayWrite = useScope(device === undefined ? "sms:write" : "devices:write");
  const without =
    device === undefined
      ? "Requests that are to wake a device without a message of its own are refused."
      : "The device is sent the message of your settings, if there is one.";
  return (
    <Card title="Wake-up SMS">
      <p>
        {device === undefined
          ? "A request may have a device that sleeps woken with an SMS. Without a message of its own, a device is sent this one."
          : "A request may have the device woken with an SMS while it sleeps."}
      </p>
      <Loaded what="wake-up SMS" query={useQuery(wakeUpQuery(device))}>
        {(message) => (
          <>
            {message === null ? (
              <Empty title={device === undefined ? "There is none." : "It has none of its own."}>
                {device === undefined ? undefined : without}
              </Empty>
            ) : (
              <Message of={message} />
            )}
            {mayWrite && <Change device={device} message={message} without={without} />}
          </>
        )}
      </Loaded>
    </Card>
  );
}

function Message({ of: message }: { of: Schemas["WakeUpMessage"] }) {
  return (
    <Facts
      of={[
        ["Kind", types.find(([type]) => type === message.type)?.[1]],
        ["From", message.source_address],
        ["Payload", message.payload],
      ]}
    />
  );
}

function Change(props: {
  device: string | undefined;
  message: Schemas["WakeUpMessage"] | null;
  without: string;
}) {
  const { message } = props;
  const set = useSetWakeUp(props.device);
  const [type, setType] = useState<string>(message?.type ?? types[0][0]);
  return (
    <>
      <details>
        <summary>{message === null ? "Set the message" : "Change the message"}</summary>
        <Form
          label="Wake-up SMS"
          submit="Save"
          done={set.isSuccess && set.variables !== null && "Saved."}
          isPending={set.isPending}
          act={(typed) => set.mutate(messageOf(type, typed))}
        >
          <div className="fields">
            <Choice
              label="Kind"
              options={types}
              value={type}
              onChange={(event) => setType(event.target.value)}
            />
            <SourceField value={message?.source_address} />
            {type !== types[0][0] && (
              <Field
                label={type === "DATA" ? "Octets in hexadecimal" : "Text"}
                name="payload"
                required
                defaultValue={message?.payload}
              />
            )}
          </div>
        </Form>
      </details>
      {message !== null && (
        <ConfirmButton
          label="Remove the message"
          title="Remove the wake-up SMS?"
          confirm="Remove it"
          disabled={set.isPending}
          act={() => set.mutate(null)}
        >
          <p>{props.without}</p>
        </ConfirmButton>
      )}
      <Refused error={set.error} />
    </>
  );
}

function messageOf(type: string, typed: Typed): Schemas["NewWakeUpMessage"] {
  const source_address = typed("source") ?? "";
  const payload = typed("payload") ?? "";
  if (type === "TEXT" || type === "DATA") return { type, source_address, payload };
  return { type: types[0][0], source_address };
}
