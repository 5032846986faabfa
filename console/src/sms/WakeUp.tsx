// The message that wakes the devices of a customer, where a request asks for it.
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
  ["REGISTRATION_UPDATE_TRIGGER", "Registration update trigger"],
  ["TEXT", "Text"],
  ["DATA", "Data"],
] as const satisfies readonly (readonly [Schemas["WakeUpMessage"]["type"], string])[];

export function WakeUp() {
  const mayWrite = useScope("sms:write");
  return (
    <Card title="Wake-up SMS">
      <p>
        A request may have a device that sleeps woken with an SMS. Without a message of its own, a
        device is sent this one.
      </p>
      <Loaded what="wake-up SMS" query={useQuery(wakeUpQuery)}>
        {(message) => (
          <>
            {message === null ? <Empty title="There is none." /> : <Message of={message} />}
            {mayWrite && <Change message={message} />}
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

function Change({ message }: { message: Schemas["WakeUpMessage"] | null }) {
  const set = useSetWakeUp();
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
          <p>Requests that are to wake a device without a message of its own are refused.</p>
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
