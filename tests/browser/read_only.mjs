// A person whose API client may only read sees every view, and nothing that changes anything.
import { deepEqual, equal } from "node:assert/strict";

import { address, signIn, story } from "./browser.mjs";
import { views } from "./views.mjs";

/** The controls that only look: filters, and the menu of the account. */
const looking = /^(Search|Signed in as .*|Load .*)$/;

await story(async (page) => {
  await signIn(page);
  const named = page.getByRole("navigation", { name: "Views", exact: true }).getByRole("link");
  deepEqual(
    await named.allInnerTexts(),
    ["Overview", "Devices", "Requests", "Integrations"],
    "no log",
  );
  for (const [path, shown] of views.filter(([path]) => !path.endsWith("/log"))) {
    await page.goto(address + path);
    await page.getByText(shown).first().waitFor();
    for (const button of await page.getByRole("button").all()) {
      const name = await button.evaluate((element) => element.innerText.replace("▾", "").trim());
      equal(looking.test(name.replace(/\s+/g, " ")), true, `${path} has the button ${name}`);
    }
  }
  for (const path of ["/log", "/devices/meter-1/log"]) {
    await page.goto(address + path);
    await page.getByText("lacks the scope logs:read").waitFor();
  }
  await page.goto(`${address}/customers`);
  await page.getByText("Only the operator").waitFor();
});
