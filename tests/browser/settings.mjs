// A person enables passive reporting, defines an object, installs a plugin and imports devices, and takes
// back what can be taken back.
import { equal } from "node:assert/strict";
import { fileURLToPath } from "node:url";

import { address, signIn, story } from "./browser.mjs";

const definition = new URL("../../protocol/tests/definitions/heat_meter.xml", import.meta.url);

await story(async (page) => {
  await signIn(page, "/settings");
  await page.getByText("Disabled").waitFor();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Enable" }).click();
  await page.getByText("Enabled").waitFor();
  await page.reload();
  await page.getByText("Enabled").waitFor();

  await page.getByLabel("Definition", { exact: true }).setInputFiles(fileURLToPath(definition));
  await page.getByRole("button", { name: "Upload" }).click();
  await page.getByText("Object 33000, version 1.0, is defined.").waitFor();
  const row = page.getByRole("row").filter({ hasText: "33000" });
  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await page.getByText("You have not defined any object.").waitFor();

  await page.goto(`${address}/integrations/plugins/new`);
  await page.getByLabel("Server").fill(process.env.ENDPOINT);
  await page.getByLabel("Webhook key").fill("7b0cf");
  await page.getByRole("button", { name: "Install the plugin" }).click();
  await page.getByRole("heading", { name: "gateway" }).waitFor();
  await page.getByText("Nothing delivered yet").waitFor();
  equal((await page.content()).includes("7b0cf"), false, "the key is not shown");
  await page.getByRole("button", { name: "Uninstall" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Uninstall" }).click();
  await page.waitForURL("**/integrations");

  await page.goto(`${address}/import`);
  const lines = ["deviceId,tag:site", "pump-1,berlin", "meter 2,berlin", "pump-3,"];
  const buffer = Buffer.from(lines.join("\n"));
  const file = { name: "devices.csv", mimeType: "text/csv", buffer };
  await page.getByLabel("File", { exact: true }).setInputFiles(file);
  await page.getByRole("button", { name: "Import", exact: true }).click();
  const refused = page.getByRole("table", { name: "Refused lines" }).getByRole("row");
  await refused.filter({ hasText: "deviceId" }).waitFor();
  equal(await refused.nth(1).getByRole("cell").first().innerText(), "3");
  await page.goto(`${address}/devices?q=pump`);
  await page.getByText("2 devices").waitFor();
});
