// Asks for the same again, here or on a command line.
import { useNavigate } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { useScope } from "../session/query";
import { Copyable, Refused } from "../ui/forms";
import { Card, ConfirmButton } from "../ui/parts";
import { Notice } from "../ui/states";
import { type NewRequest, curlOf, repetitionOf } from "./newRequest";
import { summaryOf } from "./parts";
import { useCreateRequest } from "./query";

export function Repeat({ request }: { request: Schemas["ActionRequest"] }) {
  const again = repetitionOf(request);
  const mayWrite = useScope("actions:write");
  return (
    <Card title="Once more">
      {again === undefined ? (
        <Notice tone="calm">
          The service no longer shows all that was asked for: it was too long.
        </Notice>
      ) : (
        <>
          {mayWrite && <RepeatButton request={request} again={again} />}
          <details>
            <summary>As a command line</summary>
            <Copyable
              label="Command line"
              text={curlOf(window.location.origin, request.deviceId, again)}
            />
          </details>
        </>
      )}
    </Card>
  );
}

function RepeatButton(props: { request: Schemas["ActionRequest"]; again: NewRequest }) {
  const { request, again } = props;
  const create = useCreateRequest(request.deviceId);
  const navigate = useNavigate();
  const show = (requestId: string) =>
    void navigate({ to: "/requests/$requestId", params: { requestId } });
  return (
    <>
      <ConfirmButton
        look="primary"
        label="Repeat"
        title="Repeat this request?"
        confirm="Create the request"
        disabled={create.isPending}
        act={() => create.mutate(again, { onSuccess: show })}
      >
        <p>
          A new request asks {request.deviceId} for {summaryOf(request.requestData)}.
        </p>
      </ConfirmButton>
      <Refused error={create.error} />
    </>
  );
}
