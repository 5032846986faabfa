// The operator creates a customer and an API client with few scopes, whose secret is shown once.
import { deepEqual, equal } from "node:assert/strict";

import { address, operatorSignsIn, story } from "./browser.mjs";

await story(async (page) => {
  await operatorSignsIn(page);
  await page.getByLabel("Name").fill("Harbour works");
  await page.getByLabel("Id").fill("harbour");
  await page.getByRole("button", { name: "Create the customer" }).click();
  await page.getByRole("heading", { name: "Customer harbour" }).waitFor();

  await page.getByText("New API client").click();
  await page.getByLabel("Name").fill("reader");
  await page.getByLabel("all", { exact: true }).uncheck();
  await page.getByLabel("devices:read").check();
  await page.getByRole("button", { name: "Create the API client" }).click();
  const id = await page.getByLabel("Client id").innerText();
  const secret = await page.getByLabel("Client secret").innerText();
  const row = page.getByRole("row").filter({ hasText: "reader" });
  await row.getByText("devices:read").waitFor();
  await page.getByLabel("Networks").last().fill("10.0.0.0/8");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  await page.reload();
  await row.waitFor();
  equal((await page.content()).includes(secret), false, "it is shown once");
  equal(await page.getByLabel("Networks").last().inputValue(), "10.0.0.0/8");

  const other = await page.context().browser().newContext();
  const person = await other.newPage();
  await person.goto(address);
  await person.getByLabel("Client id").fill(id);
  await person.getByLabel("Client secret").fill(secret);
  await person.getByRole("button", { name: "Sign in" }).click();
  const views = person.getByRole("navigation", { name: "Views", exact: true }).getByRole("link");
  await views.first().waitFor();
  deepEqual(await views.allInnerTexts(), ["Overview", "Devices", "Firmware"]);

  await row.getByRole("button", { name: "Remove" }).last().click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await page.getByText("There are no API clients yet.").waitFor();
  await person.reload();
  await person.getByRole("button", { name: "Sign in" }).waitFor();
});
