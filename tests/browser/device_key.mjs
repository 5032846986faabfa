// A person creates a device, sees its key once, rolls it over, and removes both.
import { equal, match, notEqual } from "node:assert/strict";

import { signIn, story } from "./browser.mjs";

await story(async (page) => {
  await signIn(page, "/devices");
  await page.getByRole("link", { name: "New device" }).click();
  await page.getByLabel("Device id").fill("pump-1");
  await page.getByLabel("Tags").fill("berlin");
  await page.getByRole("button", { name: "Create the device" }).click();
  match(await page.getByRole("alert").innerText(), /berlin is no tag/);
  await page.getByLabel("Tags").fill("site:berlin");
  await page.getByRole("button", { name: "Create the device" }).click();
  await page.waitForURL("**/devices/pump-1/settings");

  const key = page.getByLabel("Key, in hexadecimal");
  await page.getByRole("button", { name: "Generate a key" }).click();
  const first = await key.innerText();
  match(first, /^[0-9a-f]{32,}$/);
  await page.reload();
  await page.getByText("set; it is never shown").waitFor();
  equal(await key.count(), 0, "it is shown once");
  equal((await page.content()).includes(first), false);

  await page.getByRole("button", { name: "Roll over to a new key" }).click();
  notEqual(await key.innerText(), first);
  await page.getByText("valid until the device first uses the new one").waitFor();

  await page.getByRole("button", { name: "Remove the key" }).click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await page.getByRole("button", { name: "Generate a key" }).waitFor();
  equal(await key.count(), 0, "a key that was removed is not shown");

  await page.getByLabel("Name").fill("Pump");
  await page.getByLabel("Tags").fill("site:hamburg");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  await page.getByRole("link", { name: "Overview" }).last().click();
  await page.getByText("site:hamburg").waitFor();

  await page.getByRole("link", { name: "Settings" }).last().click();
  await page.getByRole("button", { name: "Remove pump-1" }).click();
  await page.getByRole("button", { name: "Remove the device" }).click();
  await page.waitForURL("**/devices");
  await page.getByText("1 device", { exact: true }).waitFor();
});
