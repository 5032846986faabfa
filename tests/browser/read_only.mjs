// A person whose API client may only read sees every view, and nothing that changes anything.
import { deepEqual } from "node:assert/strict";

import { address, signIn, story } from "./browser.mjs";
import { lookAround } from "./looking.mjs";

await story(async (page) => {
  await signIn(page);
  const named = page.getByRole("navigation", { name: "Views", exact: true }).getByRole("link");
  deepEqual(
    await named.allInnerTexts(),
    ["Overview", "Devices", "Requests", "Firmware", "Integrations"],
    "no log",
  );
  await lookAround(page, ["actions:read", "devices:read", "integrations:read"]);
  await page.goto(`${address}/customers`);
  await page.getByText("Only the operator").waitFor();
});
