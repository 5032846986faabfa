// The editor of a value, after the type of its resource.
import { type SubmitEvent, useId, useState } from "react";

import type { ResourceNode } from "./objects";
import { dataOf, inputOf } from "./values";

export function WriteForm(props: {
  label: string;
  resource: ResourceNode;
  write: (data: string) => void;
  cancel: () => void;
}) {
  const { resource } = props;
  const type = resource.info?.type || resource.values[0]?.type.toLowerCase() || "string";
  const [fault, setFault] = useState<string>();
  const hint = useId();
  const submit = async (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const entered = new FormData(event.currentTarget).get("value") ?? "";
    const data = await dataOf(type, entered);
    if ("fault" in data) setFault(data.fault);
    else props.write(data.text);
  };
  const field = { name: "value", "aria-describedby": hint, "aria-invalid": fault !== undefined };
  const input = inputOf(type);
  return (
    <form className="write row" onSubmit={(event) => void submit(event)} noValidate>
      <label className="field">
        <span>New value of {props.label}</span>
        {type === "boolean" ? (
          <select {...field} autoFocus>
            <option value="true">true</option>
            <option value="false">false</option>
          </select>
        ) : (
          <input {...field} {...input.attributes} autoFocus autoComplete="off" />
        )}
        <span id={hint} className={fault === undefined ? "muted small" : "fault small"}>
          {fault ?? [input.hint, resource.info?.units].filter(Boolean).join(", ")}
        </span>
      </label>
      <div className="row tight">
        <button type="submit" className="primary">
          Write
        </button>
        <button type="button" onClick={props.cancel}>
          Close
        </button>
      </div>
    </form>
  );
}
