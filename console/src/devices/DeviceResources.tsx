// The objects of a device as a tree, and what can be done with each resource.
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import type { Schemas } from "../api/client";
import { Outcome } from "../requests/parts";
import { useCreateRequest } from "../requests/query";
import { useScope } from "../session/query";
import { Refused } from "../ui/forms";
import { ConfirmButton } from "../ui/parts";
import { Empty, Loading, Notice } from "../ui/states";
import { Age } from "../ui/Time";
import { WithDevice } from "./DevicePage";
import {
  type InstanceNode,
  type ObjectNode,
  type ResourceNode,
  treeOf,
  valueText,
} from "./objects";
import { useObjectInfo } from "./query";
import { WriteForm } from "./WriteForm";

type Device = Schemas["InspectedDevice"];

export function DeviceResources(props: { id: string }) {
  return <WithDevice id={props.id}>{(device) => <Tree device={device} />}</WithDevice>;
}

function Tree({ device }: { device: Device }) {
  const registered = device.registration?.objects ?? [];
  const infoOf = useObjectInfo(registered);
  if (infoOf === undefined) return <Loading what="names of objects" />;
  const objects = treeOf(registered, device.values, infoOf);
  if (objects.length === 0) {
    return (
      <Empty title="No objects.">
        A device names its objects when it registers over LwM2M. What it sends over CoAP or UDP is
        among its messages.
      </Empty>
    );
  }
  return (
    <>
      {device.presence.state !== "AWAKE" && (
        <Notice tone="calm">
          The device is {device.presence.state === "ASLEEP" ? "asleep" : "not registered"}: requests
          wait until it is heard again.
        </Notice>
      )}
      <ul className="tree">
        {objects.map((object) => (
          <ObjectItem key={object.id} object={object} device={device} />
        ))}
      </ul>
    </>
  );
}

function ObjectItem(props: { object: ObjectNode; device: Device }) {
  const { object, device } = props;
  return (
    <li>
      <h2>
        {object.name ?? "Unknown object"} <code>/{object.id}</code>
        {object.version !== undefined && <span className="muted small"> v{object.version}</span>}
      </h2>
      {object.instances.length === 0 && <p className="muted">no instance</p>}
      {object.instances.map((instance) => (
        <Instance key={instance.id} instance={instance} device={device} />
      ))}
    </li>
  );
}

function Instance(props: { instance: InstanceNode; device: Device }) {
  const { instance, device } = props;
  const known = instance.resources.filter((resource) => resource.values.length > 0).length;
  return (
    <details className="card" open={known > 0}>
      <summary>
        Instance <code>{instance.path}</code>
        <span className="muted small">
          {known} of {instance.resources.length} values known
        </span>
      </summary>
      <ul className="resources">
        {instance.resources.map((resource) => (
          <Resource key={resource.id} resource={resource} device={device} />
        ))}
      </ul>
    </details>
  );
}

function Resource(props: { resource: ResourceNode; device: Device }) {
  const { resource, device } = props;
  const mayAct = useScope("actions:write");
  const { name, units } = resource.info ?? {};
  return (
    <li className="resource">
      <div className="resource-name">
        {name ?? "Unknown resource"} <code className="muted">{resource.path}</code>
      </div>
      <div className="resource-value">
        {resource.values.map((known) => (
          <div key={known.path}>
            {known.path !== resource.path && <code className="muted">{known.path} </code>}
            <span className="strong">{valueText(known.value)}</span>{" "}
            {units !== undefined && units !== "" && <span>{units} </span>}
            <span className="muted small">
              <Age at={known.time} />{" "}
              <Link
                to="/devices/$deviceId/messages"
                params={{ deviceId: device.deviceId }}
                search={{ path: known.path }}
                aria-label={`History of ${known.path}`}
              >
                history
              </Link>
            </span>
          </div>
        ))}
      </div>
      {mayAct && <Acts resource={resource} device={device} />}
    </li>
  );
}

type Act = Schemas["Lwm2mAction"];

function Acts(props: { resource: ResourceNode; device: Device }) {
  const { resource, device } = props;
  const [isWriting, setWriting] = useState(false);
  const [request, setRequest] = useState<string>();
  const create = useCreateRequest(device.deviceId);
  // An object that nobody described may permit everything: the device decides.
  const may = (operation: string) => resource.info?.operations.includes(operation) ?? true;
  const isObserved = device.observations.some(({ path }) => path === resource.path);
  const common = {
    resourceAddress: resource.path,
    requestMode:
      device.presence.state === "AWAKE" ? ("SEND_NOW" as const) : ("SEND_WHEN_ACTIVE" as const),
  };
  const perform = (act: Act) => {
    setWriting(false);
    create.mutate({ protocol: "LWM2M", body: act }, { onSuccess: setRequest });
  };
  const label = resource.info?.name ?? resource.path;
  return (
    <>
      <div className="row tight resource-acts" role="group" aria-label={label}>
        {may("R") && (
          <>
            <button
              type="button"
              disabled={create.isPending}
              onClick={() => perform({ action: "read", ...common })}
            >
              Read
            </button>
            <button
              type="button"
              disabled={create.isPending}
              onClick={() =>
                perform({ action: isObserved ? "observe-end" : "observe-start", ...common })
              }
            >
              {isObserved ? "Stop observing" : "Observe"}
            </button>
          </>
        )}
        {may("W") && (
          <button
            type="button"
            aria-expanded={isWriting}
            disabled={create.isPending}
            onClick={() => setWriting(!isWriting)}
          >
            Write
          </button>
        )}
        {may("E") && (
          <ConfirmButton
            label="Execute"
            title={`Execute ${label}?`}
            confirm="Execute"
            disabled={create.isPending}
            act={() => perform({ action: "execute", ...common })}
          >
            <p>
              The device {device.deviceId} executes <code>{resource.path}</code>
              {common.requestMode === "SEND_NOW" ? " at once." : " as soon as it is heard again."}
            </p>
          </ConfirmButton>
        )}
      </div>
      {isWriting && (
        <WriteForm
          label={label}
          resource={resource}
          cancel={() => setWriting(false)}
          write={(data) => perform({ action: "write", data, ...common })}
        />
      )}
      <Refused error={create.error} />
      {request !== undefined && <Outcome id={request} />}
    </>
  );
}
