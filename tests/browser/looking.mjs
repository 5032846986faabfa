// What does a person see who may only read?
import { equal } from "node:assert/strict";

import { address } from "./browser.mjs";
import { views } from "./views.mjs";

/** The controls that only look: filters, and the menu of the account. */
const looking = /^(Search|Signed in as .*|Load .*|Download as CSV|Copy)$/;

/** Sees every view of these scopes, and nothing that changes anything. */
export async function lookAround(page, scopes) {
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
}
