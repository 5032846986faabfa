// The properties of a destination as fields, for a new one and for one that there is.
import type { Schemas } from "../api/client";
import { Check, Choice, Field } from "../ui/forms";
import { titleOf } from "../ui/words";
import type { Destination, KindName } from "./kinds";
import { eventTypes, isKindWanted, isWanted, kindField, lifecycleKinds } from "./wantedEvents";

export function DestinationFields({ kind, of }: { kind: KindName; of?: Destination }) {
  switch (kind) {
    case "webhooks":
      return <WebhookFields of={of?.webhook} />;
    case "mqtt":
      return <BrokerFields of={of?.broker} />;
    case "plugins":
      return <PluginFields />;
    case "sms":
      return <ForwarderFields url={of?.target} />;
  }
}

function WebhookFields({ of }: { of: Schemas["Webhook"] | undefined }) {
  return (
    <>
      <Field label="Name" name="name" required maxLength={128} defaultValue={of?.name} />
      <Field
        label="URL"
        name="url"
        type="url"
        required
        maxLength={2048}
        defaultValue={of?.url}
        placeholder="https://example.com/events"
        hint=":deviceId:, :iccid:, :imsi: and :ip: are replaced by those of the device"
      />
      <Field
        label={of?.secretSet === true ? "New signing secret" : "Signing secret"}
        name="secret"
        type="password"
        autoComplete="new-password"
        hint={
          of?.secretSet === true
            ? "24 to 64 bytes in base64; without one the present secret stays"
            : "24 to 64 bytes in base64; without one the requests are not signed"
        }
      />
      {of?.secretSet === true && (
        <Check label="Sign no longer: remove the secret" name="removeSecret" />
      )}
      <EventFields of={of} />
    </>
  );
}

const versions = [
  ["5", "MQTT 5"],
  ["3", "MQTT 3.1.1"],
] as const;

function BrokerFields({ of }: { of: Schemas["Broker"] | undefined }) {
  return (
    <>
      <Field label="Name" name="name" required maxLength={128} defaultValue={of?.name} />
      <Field
        label="URL"
        name="url"
        required
        defaultValue={of?.url}
        placeholder="mqtts://broker.example.com"
      />
      <Field
        label="Topic prefix"
        name="topicPrefix"
        required
        maxLength={200}
        defaultValue={of?.topicPrefix}
      />
      <Choice
        label="Version"
        name="version"
        options={versions}
        defaultValue={of && `${of.version}`}
      />
      <Field label="User name" name="username" defaultValue={of?.username} />
      <Field
        label={of?.password === undefined ? "Password" : "New password"}
        name="password"
        type="password"
        autoComplete="new-password"
        hint={of?.password === undefined ? undefined : "without one the present password stays"}
      />
      <EventFields of={of} />
      <Check
        label="Take commands from the broker"
        name="commands"
        defaultChecked={of?.commands ?? false}
      />
    </>
  );
}

const partners = [
  ["gateway", "Gateway"],
  ["dashboard", "Dashboard"],
] as const;

function PluginFields() {
  return (
    <>
      <Choice label="Partner" name="partner" options={partners} />
      <Field
        label="Server"
        name="serverDomain"
        required
        placeholder="gateway.example.com"
        hint="a host, with a port if it is not 443"
      />
      <Field
        label="Webhook key"
        name="webhookKey"
        type="password"
        autoComplete="new-password"
        required
        maxLength={512}
        hint="the webhook secret that the third party gave you; it is never shown again"
      />
    </>
  );
}

function ForwarderFields({ url }: { url: string | undefined }) {
  return (
    <Field
      label="URL"
      name="url"
      type="url"
      required
      defaultValue={url}
      placeholder="https://example.com/sms/"
      hint="the requests carry no authentication: use a path that nobody guesses"
    />
  );
}

/** Which events a destination receives, and in which form. */
function EventFields({
  of,
}: {
  of: Pick<Schemas["Webhook"], "eventTypes" | "jsonPayloadEnabled"> | undefined;
}) {
  return (
    <>
      <fieldset className="choices">
        <legend className="small strong">Events</legend>
        {eventTypes.map(([type, label]) => (
          <Check
            key={type}
            label={label}
            name={type}
            defaultChecked={isWanted(type, of?.eventTypes)}
          />
        ))}
      </fieldset>
      <fieldset className="choices">
        <legend className="small strong">Lifecycle events</legend>
        {lifecycleKinds.map((kind) => (
          <Check
            key={kind}
            label={titleOf(kind)}
            name={kindField(kind)}
            defaultChecked={isKindWanted(kind, of?.eventTypes)}
          />
        ))}
      </fieldset>
      <Check
        label="Embed data that is JSON as JSON"
        name="json"
        defaultChecked={of?.jsonPayloadEnabled ?? false}
      />
    </>
  );
}
