// A person uploads an image, gives it to devices of which one fails, resumes the campaign that has halted, and
// pauses and cancels another one.
import { equal } from "node:assert/strict";

import { address, expectAccessible, signIn, story } from "./browser.mjs";

await story(async (page) => {
  await signIn(page, "/firmware/images");
  const buffer = Buffer.alloc(3 * 1024, "image");
  const file = { name: "pump.bin", mimeType: "application/octet-stream", buffer };
  await page.getByLabel("File", { exact: true }).setInputFiles(file);
  await page.getByLabel("Name").fill("Pump");
  await page.getByLabel("Version").fill("1.5.0");
  await page.getByRole("button", { name: "Upload" }).click();
  await page.getByText("Pump 1.5.0 is uploaded.").waitFor();
  const row = page.getByRole("row").filter({ hasText: "Pump 1.5.0" });
  await row.getByText("3 KiB").waitFor();

  await page.goto(`${address}/devices?q=pump`);
  await page.getByText("2 devices").waitFor();
  await page.getByRole("link", { name: "Firmware for all that match" }).click();
  await page.getByText("Begins with").waitFor();
  await page.getByLabel("Image").selectOption({ label: "Pump 1.5.0, 3 KiB" });
  await page.getByLabel("Devices at a time").fill("1");
  await page.getByLabel("Halt at failures").fill("50");
  await page.getByRole("button", { name: "Create the campaign" }).click();
  await page.waitForURL("**/firmware/campaigns/*");
  await page.getByText("Halted", { exact: true }).waitFor();
  await page.getByText("1 of 2 devices have ended.").waitFor();
  const failed = page.getByRole("row").filter({ hasText: "pump-1" });
  await failed.getByText("Failed").waitFor();
  await expectAccessible(page, "a campaign that has halted");

  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Resume it" }).click();
  await page.getByText("Done", { exact: true }).waitFor();
  const updated = page.getByRole("row").filter({ hasText: "pump-2" });
  await updated.getByText("Succeeded").waitFor();
  await updated.getByText("3 KiB").waitFor();
  equal(await page.getByRole("button", { name: "Cancel" }).count(), 0, "it has ended");

  // One that begins tomorrow can be paused and cancelled meanwhile.
  await page.goto(`${address}/new-campaign?ids=pump-2`);
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);
  await page.getByLabel("Not before").fill(tomorrow);
  await page.getByRole("button", { name: "Create the campaign" }).click();
  await page.getByText("0 of 1 devices have ended.").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel the campaign" }).click();
  await page.getByText("Cancelled", { exact: true }).waitFor();
  await page.getByText("1 of 1 devices have ended.").waitFor();

  await page.getByRole("link", { name: "Firmware" }).click();
  await page
    .getByRole("table", { name: "Campaigns, newest first" })
    .getByText("Cancelled")
    .waitFor();
  await page.getByRole("link", { name: "Images" }).click();
  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Remove the image" }).click();
  await row.waitFor({ state: "detached" });
});
