// What a request asks for, as fields: those of its protocol, and when it is sent.
import { useState } from "react";

import { Check, Choice, Field } from "../ui/forms";
import { type Protocol, actions, methods, modes, payloadTypes } from "./newRequest";
import { protocols } from "./words";

export function RequestFields(props: { protocol: Protocol; choose: (protocol: Protocol) => void }) {
  const { protocol } = props;
  return (
    <div className="fields">
      <Choice
        label="Protocol"
        options={protocols}
        value={protocol}
        onChange={(event) => props.choose(event.target.value as Protocol)}
      />
      {protocol === "LWM2M" && <Lwm2mFields />}
      {protocol === "COAP" && <CoapFields />}
      {protocol === "UDP" && <PayloadFields isRequired />}
      <Choice label="Sent" name="requestMode" options={modes} />
      {protocol !== "UDP" && (
        <Field
          label="Attempts"
          name="sendAttempts"
          type="number"
          min={1}
          max={5}
          defaultValue="1"
        />
      )}
      <Field
        label="Expires after hours"
        name="expiresIn"
        type="number"
        min={0.01}
        max={168}
        step="any"
        placeholder="48"
      />
      <Check label="Wake sleeping devices with an SMS" name="wakeUp" value="SMS" />
    </div>
  );
}

function Lwm2mFields() {
  const [action, setAction] = useState("read");
  return (
    <>
      <Choice
        label="Action"
        name="action"
        options={actions}
        value={action}
        onChange={(event) => setAction(event.target.value)}
      />
      <Field
        label="Resource address"
        name="resourceAddress"
        required
        placeholder="/3/0/0"
        pattern="(/[0-9]{1,5}){1,4}"
        title="Numbers with a slash before each, such as /3/0/0"
      />
      {action === "write" && <Field label="Value" name="data" />}
      {action === "execute" && <Field label="Arguments" name="data" />}
    </>
  );
}

function CoapFields() {
  return (
    <>
      <Choice label="Method" name="requestType" options={methods} />
      <Field label="Path" name="path" required placeholder="/valve" pattern="/.*" />
      <PayloadFields isRequired={false} />
    </>
  );
}

function PayloadFields(props: { isRequired: boolean }) {
  return (
    <>
      <Field label="Port" name="port" type="number" min={1} max={65_535} required />
      <Field label="Payload" name="payload" required={props.isRequired} />
      <Choice label="Payload is" name="payloadType" options={payloadTypes} />
    </>
  );
}

/** The protocol that was chosen. */
export function useProtocol() {
  return useState<Protocol>("LWM2M");
}
