// What devices are given at their bootstrap: looked at, set, and removed.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { bootstrapConfigurationServersSecurityValues } from "../../generated/api";
import { useScope } from "../session/query";
import { Choice, Field, Form, Refused, TextArea } from "../ui/forms";
import { Card, ConfirmButton, DataTable } from "../ui/parts";
import { Empty, Loaded } from "../ui/states";
import { durationOf } from "../ui/time";
import { type Configuration, type Server, configurationQuery, useConfigure } from "./query";
import { configurationOf, fieldOf, objectsText } from "./typedConfiguration";

/** The configuration of a device, or that of the customer. */
export function BootstrapConfiguration({ device }: { device?: string }) {
  const query = useQuery(configurationQuery(device));
  const mayWrite = useScope("devices:write");
  const without =
    device === undefined
      ? "Devices are given this service alone, with the security that their bootstrap came with."
      : "The device is given what your settings say.";
  return (
    <Card title="Bootstrap">
      <Loaded what="bootstrap configuration" query={query}>
        {(configuration) => (
          <>
            {configuration === null ? (
              <Empty title="Nothing is configured.">{without}</Empty>
            ) : (
              <Shown configuration={configuration} />
            )}
            {mayWrite && <Change device={device} configuration={configuration} />}
            {mayWrite && configuration !== null && <Removal device={device} without={without} />}
          </>
        )}
      </Loaded>
    </Card>
  );
}

const securityNames: Record<string, string> = {
  NOSEC: "None",
  PSK: "Pre-shared key",
  RPK: "Raw public key",
  X509: "Certificate",
};

const securityName = (security: string) => securityNames[security] ?? security;

/** The securities that the API has. A certificate is that of one device. */
const securitiesOf = (device: string | undefined) =>
  bootstrapConfigurationServersSecurityValues
    .filter((security) => device !== undefined || security !== "X509")
    .map((security) => [security, securityName(security)] as const);

/** What becomes of the keys of an account. */
const keysOf: Record<string, string> = {
  NOSEC: "Everybody on the way reads what the device sends.",
  PSK: "The service makes a key at each bootstrap.",
  RPK: "The service makes a key pair at each bootstrap, and stores the public key alone.",
  X509: "The device is given this certificate and its private key, which is stored sealed.",
};

function Shown({ configuration }: { configuration: Configuration }) {
  const objects = objectsText(configuration);
  return (
    <>
      <DataTable
        caption="Servers"
        rows={configuration.servers}
        keyOf={({ shortId }) => `${shortId}`}
        columns={[
          { head: "Short id", cell: ({ shortId }) => shortId },
          { head: "URI", cell: ({ uri }) => uri ?? "this service" },
          { head: "Lifetime", cell: ({ lifetime }) => durationOf(lifetime) },
          { head: "Binding", cell: ({ binding }) => binding },
          { head: "Security", cell: ({ security }) => securityName(security) },
        ]}
      />
      {objects !== "" && (
        <>
          <h3>Further values</h3>
          <pre tabIndex={0}>{objects}</pre>
        </>
      )}
    </>
  );
}

/** As many servers as a configuration may have. */
const serversMax = 8;

const newServer: Server = { shortId: 1111, lifetime: 86_400, binding: "U", security: "PSK" };

function Change(props: { device: string | undefined; configuration: Configuration | null }) {
  const configure = useConfigure(props.device);
  // What is changed meanwhile is not what the fields began with.
  const [was] = useState<Configuration>(props.configuration ?? { servers: [newServer] });
  const [places, setPlaces] = useState(() => was.servers.map((_, place) => place));
  const [fault, setFault] = useState<Error | null>(null);
  return (
    <details>
      <summary>{props.configuration === null ? "Configure" : "Change"}</summary>
      <Form
        label="Bootstrap"
        submit="Save"
        done={configure.isSuccess && "Saved. It counts from the next bootstrap on."}
        isPending={configure.isPending}
        error={fault ?? configure.error}
        act={(typed) => {
          const typedOne = configurationOf(places, typed, was.servers);
          setFault("fault" in typedOne ? new Error(typedOne.fault) : null);
          if ("body" in typedOne) configure.mutate(typedOne.body);
        }}
      >
        {places.map((place, index) => (
          <ServerFields
            key={place}
            device={props.device}
            place={place}
            number={index + 1}
            of={was.servers[place] ?? newServer}
            remove={
              places.length > 1
                ? () => setPlaces(places.filter((other) => other !== place))
                : undefined
            }
          />
        ))}
        {places.length < serversMax && (
          <div className="row">
            <button type="button" onClick={() => setPlaces([...places, Math.max(...places) + 1])}>
              Add a server
            </button>
          </div>
        )}
        <TextArea
          label="Further values"
          name="objects"
          defaultValue={objectsText(was)}
          placeholder='{"/3/0/15": "Europe/Berlin"}'
          hint="a JSON object of values by path"
        />
      </Form>
    </details>
  );
}

function ServerFields(props: {
  device: string | undefined;
  place: number;
  number: number;
  of: Server;
  remove: (() => void) | undefined;
}) {
  const { place, number, of, remove } = props;
  const [security, setSecurity] = useState<string>(of.security);
  return (
    <fieldset className="group">
      <legend className="small strong">Server {number}</legend>
      <div className="fields">
        <Field
          label="Short id"
          name={fieldOf("shortId", place)}
          type="number"
          min={1}
          max={65_534}
          required
          defaultValue={of.shortId}
        />
        <Field
          label="URI"
          name={fieldOf("uri", place)}
          maxLength={255}
          defaultValue={of.uri ?? ""}
          hint="by default this service"
        />
        <Field
          label="Lifetime in seconds"
          name={fieldOf("lifetime", place)}
          type="number"
          min={1}
          max={86_400}
          required
          defaultValue={of.lifetime}
        />
        <Field
          label="Binding"
          name={fieldOf("binding", place)}
          pattern="[UMHTSNQ]+"
          title="Some of the letters U, M, H, T, S, N and Q"
          required
          defaultValue={of.binding}
        />
        <Choice
          label="Security"
          name={fieldOf("security", place)}
          options={securitiesOf(props.device)}
          value={security}
          onChange={(event) => setSecurity(event.target.value)}
        />
      </div>
      <p className="muted small">{keysOf[security]}</p>
      {security === "X509" && <CertificateFields place={place} of={of} />}
      {remove !== undefined && (
        <button type="button" onClick={remove}>
          Leave out server {number}
        </button>
      )}
    </fieldset>
  );
}

function CertificateFields({ place, of }: { place: number; of: Server }) {
  return (
    <div className="fields">
      <TextArea
        label="Certificate"
        name={fieldOf("certificate", place)}
        required
        defaultValue={of.certificate ?? ""}
        placeholder="-----BEGIN CERTIFICATE-----"
        hint="of the device, in PEM; for this service it has the endpoint name of the device"
      />
      <TextArea
        label="Private key"
        name={fieldOf("key", place)}
        required
        defaultValue={of.key ?? ""}
        placeholder="-----BEGIN PRIVATE KEY-----"
        hint={
          of.key === undefined
            ? "on P-256, in PEM, without a passphrase"
            : `${of.key} keeps the stored one; with another certificate, its key in PEM`
        }
      />
    </div>
  );
}

function Removal(props: { device: string | undefined; without: string }) {
  const configure = useConfigure(props.device);
  return (
    <>
      <ConfirmButton
        label="Remove the configuration"
        title="Remove the bootstrap configuration?"
        confirm="Remove it"
        disabled={configure.isPending}
        act={() => configure.mutate(null)}
      >
        <p>From the next bootstrap on: {props.without}</p>
      </ConfirmButton>
      <Refused error={configure.error} />
    </>
  );
}
