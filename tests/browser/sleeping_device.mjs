// A person finds a sleeping device, schedules a write, and sees it succeed once the device wakes.
import { equal, match } from "node:assert/strict";

import { signIn, story, wish } from "./browser.mjs";

await story(async (page) => {
  await signIn(page);
  const views = page.getByRole("navigation", { name: "Views", exact: true });
  await views.getByRole("link", { name: "Devices" }).click();
  await page.getByLabel("Search").fill("meter");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/devices?q=meter");
  const row = page.getByRole("row").filter({ hasText: "meter-1" });
  await row.getByText("Asleep").waitFor();
  await row.getByRole("link", { name: "meter-1" }).click();

  await page.getByRole("link", { name: "Resources" }).click();
  await page.getByText("The device is asleep").waitFor();
  await page.getByText("/3/0", { exact: true }).click();
  const timezone = page.getByRole("listitem").filter({ hasText: "/3/0/15" }).last();
  match(await timezone.innerText(), /^Timezone/, "the registry's name");
  await timezone.getByRole("button", { name: "Write" }).click();
  await timezone.getByLabel("New value of Timezone").fill("Asia/Tokyo");
  await page.keyboard.press("Enter");
  await timezone.getByText("Scheduled").waitFor();

  const loaded = await page.evaluate(() => (globalThis.isSamePage = performance.timeOrigin));
  wish("the device wakes up");
  await timezone.getByText("Succeeded").waitFor();
  equal(await page.evaluate(() => globalThis.isSamePage), loaded, "the page was not loaded again");

  await timezone.getByRole("link", { name: "write /3/0/15 = Asia/Tokyo" }).click();
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await page.getByText("Answered: 2.04").waitFor();
});
