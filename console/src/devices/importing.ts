// Imports a file of devices, part by part.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { type Schemas, api, bodyOf } from "../api/client";
import { partsOf } from "./importParts";

/** How far an import is. */
export interface Progress {
  bytes: number;
  lines: number;
  created: number;
  unchanged: number;
  refused: number;
  /** The first refused lines, by their number in the file. */
  refusals: Schemas["RefusedLine"][];
}

/** As many refused lines as a page can show. */
const refusalsMax = 1_000;

const nothing: Progress = {
  bytes: 0,
  lines: 0,
  created: 0,
  unchanged: 0,
  refused: 0,
  refusals: [],
};

export function useImport() {
  const queries = useQueryClient();
  const [progress, setProgress] = useState(nothing);
  const start = useMutation({
    mutationFn: async ({ file, stop }: { file: File; stop: AbortSignal }) => {
      const isCsv = file.name.toLowerCase().endsWith(".csv");
      let sum = nothing;
      setProgress(sum);
      for await (const { from, to, linesBefore, header } of partsOf(file, isCsv)) {
        if (stop.aborted) break;
        const part = new Blob([file.slice(0, header.end), file.slice(from, to)]);
        const answer = await imported(part, isCsv);
        // The header is counted in every part.
        sum = added(sum, answer, linesBefore - header.lines, to);
        setProgress(sum);
      }
      return sum;
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["devices"] }),
  });
  return { start, progress };
}

function imported(part: Blob, isCsv: boolean): Promise<Schemas["ImportSummary"]> {
  const type = isCsv ? "text/csv" : "application/x-ndjson";
  const call = api.POST("/management-api/v1/devices/import", {
    body: "",
    bodySerializer: () => part,
    headers: { "content-type": type, accept: "application/json" },
  });
  // The summary is JSON because the call accepts nothing else.
  return bodyOf(call) as Promise<Schemas["ImportSummary"]>;
}

function added(
  sum: Progress,
  part: Schemas["ImportSummary"],
  linesBefore: number,
  bytes: number,
): Progress {
  const refusals = part.refusals.map((refusal) => ({
    ...refusal,
    line: refusal.line + linesBefore,
  }));
  return {
    bytes,
    lines: sum.lines + part.lines,
    created: sum.created + part.created,
    unchanged: sum.unchanged + part.unchanged,
    refused: sum.refused + part.refused,
    refusals: [...sum.refusals, ...refusals].slice(0, refusalsMax),
  };
}
