// The properties of a device as fields, for a new one and for one that there is.
import type { Schemas } from "../api/client";
import { Choice, Field } from "../ui/forms";
import { tagText } from "../ui/typed";

const securities = [
  ["ANY", "With or without DTLS"],
  ["DTLS", "DTLS alone"],
] as const;

export function DeviceFields({ of }: { of?: Schemas["Device"] }) {
  const hint = of === undefined ? "by default the device id" : undefined;
  return (
    <div className="fields">
      {of === undefined && <Field label="Device id" name="deviceId" maxLength={128} />}
      <Field label="Name" name="name" maxLength={128} defaultValue={of?.name} />
      <Field
        label="ICCID"
        name="iccid"
        maxLength={128}
        required={of !== undefined}
        defaultValue={of?.iccid}
        hint={hint}
      />
      <Field
        label="IMSI"
        name="imsi"
        inputMode="numeric"
        pattern="[0-9]{1,15}"
        title="At most 15 digits"
        defaultValue={of?.imsi}
      />
      <Field
        label="MSISDN"
        name="msisdn"
        inputMode="numeric"
        pattern="[0-9]{1,15}"
        title="At most 15 digits, without a plus sign"
        defaultValue={of?.msisdn}
        hint="its number, for SMS"
      />
      <Field label="IP address" name="ip" defaultValue={of?.ip} />
      <Field
        label="Endpoint"
        name="endpoint"
        maxLength={255}
        required={of !== undefined}
        defaultValue={of?.endpoint}
        hint={hint}
      />
      <Choice
        label="Security"
        name="security"
        options={securities}
        defaultValue={of?.security ?? "ANY"}
      />
      <Field
        label="Offline after, in seconds"
        name="offlineAfter"
        type="number"
        min={1}
        max={31_536_000}
        defaultValue={of?.offlineAfter}
        hint="of silence; by default as your settings say"
      />
      <Field
        label="Tags"
        name="tags"
        defaultValue={tagText(of?.tags ?? {})}
        hint="such as site:berlin, floor:2"
      />
    </div>
  );
}

/** What is wrong with tags that were typed. */
export function tagFault(fault: string): Error {
  return new Error(`${fault} is no tag: write a key, a colon and a value, such as site:berlin`);
}
