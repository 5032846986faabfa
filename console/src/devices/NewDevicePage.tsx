// Creates a device.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { Form } from "../ui/forms";
import { Card, Page } from "../ui/parts";
import { Scoped } from "../ui/states";
import type { Typed } from "../ui/typed";
import { useCreateDevice } from "./changes";
import { DeviceFields, tagFault } from "./DeviceFields";
import { newDeviceOf } from "./typedDevice";

export function NewDevicePage() {
  return (
    <Page title="New device">
      <Scoped scope="devices:write">
        <NewDevice />
      </Scoped>
    </Page>
  );
}

function NewDevice() {
  const create = useCreateDevice();
  const navigate = useNavigate();
  const [fault, setFault] = useState<Error | null>(null);
  const act = (typed: Typed) => {
    const device = newDeviceOf(typed);
    setFault("fault" in device ? tagFault(device.fault) : null);
    if ("fault" in device) return;
    create.mutate(device.body, {
      onSuccess: (deviceId) =>
        void navigate({ to: "/devices/$deviceId/settings", params: { deviceId } }),
    });
  };
  return (
    <Card title="Properties">
      <p className="muted">
        A device has an id or an ICCID; each of them is the other one by default. It gets its keys
        in the next step.
      </p>
      <Form
        label="New device"
        submit="Create the device"
        isPending={create.isPending}
        error={fault ?? create.error}
        act={act}
      >
        <DeviceFields />
      </Form>
    </Card>
  );
}
