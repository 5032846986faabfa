// What can be changed of a device: its properties, its keys, and that it exists.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import type { Schemas } from "../api/client";
import { BootstrapConfiguration } from "../bootstrap/BootstrapConfiguration";
import { Choice, Field, Form, Refused, ShownOnce, TextArea } from "../ui/forms";
import { Card, ConfirmButton, Facts } from "../ui/parts";
import { given } from "../ui/search";
import { Scoped } from "../ui/states";
import { Time } from "../ui/Time";
import type { Typed } from "../ui/typed";
import { useAmendDevice, useChangeKeys, useGenerateKey, useRemoveDevice } from "./changes";
import { DeviceFields, tagFault } from "./DeviceFields";
import { WithDevice } from "./DevicePage";
import { changeOf } from "./typedDevice";

type Device = Schemas["InspectedDevice"];

export function DeviceSettings(props: { id: string }) {
  return (
    <Scoped scope="devices:write">
      <WithDevice id={props.id}>
        {(device) => (
          <div className="grid">
            <Properties device={device} />
            <PreSharedKey device={device} />
            <PublicKey device={device} />
            <BootstrapConfiguration device={device.deviceId} />
            <Removal device={device} />
          </div>
        )}
      </WithDevice>
    </Scoped>
  );
}

function Properties({ device }: { device: Device }) {
  const amend = useAmendDevice(device.deviceId);
  // What somebody else changes meanwhile is not what the fields began with.
  const [was, setWas] = useState<Schemas["Device"]>(device);
  const [fault, setFault] = useState<Error | null>(null);
  const act = (typed: Typed) => {
    const amended = changeOf(typed, was);
    setFault("fault" in amended ? tagFault(amended.fault) : null);
    if ("body" in amended) amend.mutate(amended.body, { onSuccess: setWas });
  };
  return (
    <Card title="Properties">
      <Form
        label="Properties"
        submit="Save"
        done={amend.isSuccess && "Saved."}
        isPending={amend.isPending}
        error={fault ?? amend.error}
        act={act}
      >
        <DeviceFields of={device} />
      </Form>
    </Card>
  );
}

function PreSharedKey({ device }: { device: Device }) {
  const { psk } = device;
  const generate = useGenerateKey(device.deviceId);
  const change = useChangeKeys(device.deviceId);
  return (
    <Card title="Pre-shared key">
      <Facts
        of={[
          ["Key", psk.configured ? "set; it is never shown" : "none"],
          ["Identity", psk.identity],
          ["Since", psk.created && <Time key="" at={psk.created} />],
          [
            "Previous key",
            psk.previousValid === true
              ? "valid until the device first uses the new one"
              : undefined,
          ],
        ]}
      />
      {generate.data !== undefined && (
        <ShownOnce
          of={[
            ["Identity", generate.data.identity],
            ["Key, in hexadecimal", generate.data.secretKey],
          ]}
        />
      )}
      <div className="row">
        <button
          type="button"
          className="primary"
          disabled={generate.isPending}
          onClick={() => generate.mutate()}
        >
          {psk.configured ? "Roll over to a new key" : "Generate a key"}
        </button>
        {psk.configured && (
          <ConfirmButton
            label="Remove the key"
            title="Remove the pre-shared key?"
            confirm="Remove it"
            disabled={change.isPending}
            act={() =>
              change.mutate((changes) => changes.removeKey(), { onSuccess: () => generate.reset() })
            }
          >
            <p>
              It ends at once, with the one before it: {device.deviceId} cannot open another DTLS
              session with either.
            </p>
          </ConfirmButton>
        )}
      </div>
      <Refused error={generate.error ?? change.error} />
      <details>
        <summary>Set a key of your own</summary>
        <OwnKey device={device} />
      </details>
    </Card>
  );
}

const formats = [
  ["HEX", "Hexadecimal"],
  ["STRING", "Text"],
] as const;

function OwnKey({ device }: { device: Device }) {
  const change = useChangeKeys(device.deviceId);
  return (
    <Form
      label="A key of your own"
      submit="Set the key"
      done={change.isSuccess && "The key is set."}
      isPending={change.isPending}
      error={change.error}
      act={(typed, form) => {
        const body = {
          secretKey: typed("secretKey") ?? "",
          format: typed("format") === "STRING" ? "STRING" : "HEX",
          ...given({ identity: typed("identity") }),
        } as Schemas["DeviceKey"];
        change.mutate((changes) => changes.setKey(body), { onSuccess: () => form.reset() });
      }}
    >
      <Field label="Identity" name="identity" maxLength={255} hint="by default the endpoint" />
      <Choice label="Format" name="format" options={formats} />
      <Field
        label="Key"
        name="secretKey"
        type="password"
        autoComplete="new-password"
        required
        hint="8 to 256 characters, 16 to 512 hexadecimal digits"
      />
    </Form>
  );
}

function PublicKey({ device }: { device: Device }) {
  const { publicKey } = device;
  const change = useChangeKeys(device.deviceId);
  return (
    <Card title="Raw public key">
      <Facts
        of={[
          ["Key", publicKey === undefined ? "none" : <code key="">{publicKey.key}</code>],
          ["Since", publicKey && <Time key="" at={publicKey.created} />],
          [
            "Previous key",
            publicKey?.previousValid === true
              ? "valid until the device first uses the new one"
              : undefined,
          ],
        ]}
      />
      {publicKey !== undefined && (
        <ConfirmButton
          label="Remove the public key"
          title="Remove the public key?"
          confirm="Remove it"
          disabled={change.isPending}
          act={() => change.mutate((changes) => changes.removePublicKey())}
        >
          <p>It ends at once: {device.deviceId} cannot open another DTLS session with it.</p>
        </ConfirmButton>
      )}
      <details>
        <summary>{publicKey === undefined ? "Set a public key" : "Replace it"}</summary>
        <Form
          label="Public key"
          submit="Set the public key"
          isPending={change.isPending}
          act={(typed, form) => {
            const body = { publicKey: typed("publicKey") ?? "" };
            change.mutate((changes) => changes.setPublicKey(body), {
              onSuccess: () => form.reset(),
            });
          }}
        >
          <TextArea
            label="Key"
            name="publicKey"
            required
            hint="P-256, as PEM or as the base64 of its SubjectPublicKeyInfo"
          />
        </Form>
      </details>
      <Refused error={change.error} />
    </Card>
  );
}

function Removal({ device }: { device: Device }) {
  const remove = useRemoveDevice(device.deviceId);
  const navigate = useNavigate();
  return (
    <Card title="Remove the device">
      <p>
        Its registration, values, messages, SMS and keys are deleted, and what waits for it is
        cancelled. Its requests and its entries of the log are kept as long as those of others.
      </p>
      <ConfirmButton
        label={`Remove ${device.deviceId}`}
        title={`Remove ${device.deviceId}?`}
        confirm="Remove the device"
        disabled={remove.isPending}
        act={() => remove.mutate(undefined, { onSuccess: () => void navigate({ to: "/devices" }) })}
      >
        <p>Everything that is known of the device is deleted. This cannot be undone.</p>
      </ConfirmButton>
      <Refused error={remove.error} />
    </Card>
  );
}
