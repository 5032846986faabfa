// A person watches a value move in a chart, and takes its history home.
import { equal, match } from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { signIn, story, wish } from "./browser.mjs";

await story(async (page) => {
  await signIn(page, "/devices/meter-1/resources");
  await page.getByText("/3303/0", { exact: true }).waitFor();
  await page.getByRole("link", { name: "History of /3303/0/5700" }).click();
  await page.getByRole("img", { name: /2 values between .* the last one 22$/ }).waitFor();

  wish("another value is sent");
  await page.getByRole("img", { name: /3 values between .* the last one 25.5$/ }).waitFor();

  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download as CSV" }).click();
  const download = await downloading;
  equal(download.suggestedFilename(), "meter-1.csv");
  const rows = (await readFile(await download.path(), "utf8")).trim().split("\r\n");
  equal(rows.length, 4);
  equal(rows[0], "received,measured,kind,path,value");
  match(rows[1], /,LwM2M send,\/3303\/0\/5700,25.5$/);

  // More values than the page shows are reduced by the service.
  wish("the values of five days are sent");
  await page
    .getByRole("img", { name: /123 values between 20 and 25.5, the last one 25.5$/ })
    .waitFor();
});
