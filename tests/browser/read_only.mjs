// A person whose API client may only read sees every view, and nothing that changes anything.
import { deepEqual, equal } from "node:assert/strict";

import { address, signIn, story } from "./browser.mjs";
import { views } from "./views.mjs";

/** The controls that only look: filters, and the menu of the account. */
const looking = /^(Search|Signed in as .*|Load .*|Download as CSV|Copy)$/;

/** The scopes of the API client. */
const scopes = ["actions:read", "devices:read", "integrations:read"];

await story(async (page) => {
  await signIn(page);
  const named = page.getByRole("navigation", { name: "Views", exact: true }).getByRole("link");
  deepEqual(
    await named.allInnerTexts(),
    ["Overview", "Devices", "Requests", "Firmware", "Integrations"],
    "no log",
  );
  for (const [path, shown, scope] of views) {
    await page.goto(address + path);
    if (!scopes.includes(scope)) {
      await page.getByText(`lacks the scope ${scope}`).waitFor();
      continue;
    }
    await page.getByText(shown).first().waitFor();
    for (const button of await page.getByRole("button").all()) {
      const name = await button.evaluate((element) => element.innerText.replace("▾", "").trim());
      equal(looking.test(name.replace(/\s+/g, " ")), true, `${path} has the button ${name}`);
    }
    for (const leading of [
      "New",
      "New device",
      "Import",
      "Request to all that match",
      "Firmware for all that match",
      "New campaign",
    ]) {
      equal(await page.getByRole("link", { name: leading, exact: true }).count(), 0, leading);
    }
  }
  await page.goto(`${address}/customers`);
  await page.getByText("Only the operator").waitFor();
});
