// Every view, light and dark, is usable by people with disabilities, and fits a phone.
import { ok } from "node:assert/strict";
import { mkdir } from "node:fs/promises";

import { address, expectAccessible, operatorSignsIn, signIn, story } from "./browser.mjs";
import { operatorViews, views } from "./views.mjs";

/** Where pictures of the views are kept, for people to look at. */
const pictures = process.env.PICTURES;

const sizes = {
  desk: { width: 1440, height: 900 },
  phone: { width: 390, height: 844 },
};

for (const colorScheme of ["light", "dark"]) {
  await story(
    async (page) => {
      await page.goto(address);
      await page.getByRole("button", { name: "Sign in" }).waitFor();
      await look(page, "/sign-in", colorScheme);
      await signIn(page);
      await lookAtEach(page, views, colorScheme);
      await page.goto(`${address}/log`);
      await page.getByRole("link", { name: "DeviceController[InvalidDataType]" }).click();
      await page.getByText("Trace id").waitFor();
      await look(page, "/log/one", colorScheme);
      await page.goto(`${address}/jobs`);
      await page.getByRole("table").getByRole("link").first().click();
      await page.getByText("1 of 1 devices").waitFor();
      await look(page, "/jobs/one", colorScheme);
      await page.goto(`${address}/devices?q=nothing`);
      await page.getByText("No device matches.").waitFor();
      await look(page, "/no-devices", colorScheme);
      await page.goto(`${address}/devices/none`);
      await page.getByText("There is no such device.").waitFor();
      await look(page, "/no-device", colorScheme);
    },
    { colorScheme },
  );
  await story(
    async (page) => {
      await operatorSignsIn(page);
      await lookAtEach(page, operatorViews, colorScheme);
    },
    { colorScheme },
  );
}

async function lookAtEach(page, paths, colorScheme) {
  for (const [path, shown] of paths) {
    await page.goto(address + path);
    await page.getByText(shown).first().waitFor();
    await look(page, path, colorScheme);
  }
}

async function look(page, path, colorScheme) {
  await page.setViewportSize(sizes.desk);
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  await expectAccessible(page, `${path} ${colorScheme}`);
  for (const [name, size] of Object.entries(sizes)) {
    await page.setViewportSize(size);
    const surplus = await page.evaluate(() => {
      const boxes = [document.documentElement, ...document.querySelectorAll(".card")];
      return Math.max(...boxes.map((box) => box.scrollWidth - box.clientWidth));
    });
    ok(surplus <= 0, `${path} is ${surplus} pixels too wide for a ${name}`);
    if (pictures !== undefined) {
      await mkdir(pictures, { recursive: true });
      const file = path.slice(1).replaceAll(/[/?=&]/g, "-");
      await page.screenshot({
        path: `${pictures}/${file}-${name}-${colorScheme}.png`,
        fullPage: true,
      });
    }
  }
}
