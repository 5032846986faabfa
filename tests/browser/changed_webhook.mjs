// A person changes what a webhook and a broker receive, and finds devices that are offline.
import { equal } from "node:assert/strict";

import { address, signIn, story } from "./browser.mjs";

await story(async (page) => {
  await signIn(page, `/integrations/webhooks/${process.env.WEBHOOK}`);
  await page.getByText("lifecycle (registered)").waitFor();
  await page.getByText("Change", { exact: true }).click();
  const change = page.getByRole("form", { name: "Change Warehouse" });
  equal(await change.getByLabel("Registered", { exact: true }).isChecked(), true);
  equal(await change.getByLabel("Data", { exact: true }).isChecked(), false);
  await change.getByLabel("Name").fill("Depot");
  await change.getByLabel("Data", { exact: true }).check();
  await change.getByLabel("Asleep", { exact: true }).check();
  await change.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Depot" }).waitFor();
  await page.getByText("telemetry data, lifecycle (registered, asleep)").waitFor();

  await page.goto(`${address}/integrations/mqtt/new`);
  await page.getByLabel("Name", { exact: true }).fill("Broker");
  await page.getByLabel("URL").fill("mqtt://127.0.0.1:9");
  await page.getByLabel("Topic prefix").fill("acme");
  await page.getByRole("button", { name: "Create the integration" }).click();
  await page.getByText("mqtt://127.0.0.1:9 acme").waitFor();
  await page.getByText("Change", { exact: true }).click();
  await page.getByLabel("Topic prefix").fill("acme/devices");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("mqtt://127.0.0.1:9 acme/devices").waitFor();

  await page.goto(`${address}/devices`);
  const row = page.getByRole("row").filter({ hasText: "meter-1" });
  await row.getByText("Online").waitFor();
  await page.getByLabel("Connectivity").selectOption("OFFLINE");
  await page.getByText("No device matches.").waitFor();
  await page.getByLabel("Connectivity").selectOption("ONLINE");
  await row.waitFor();
});
