// A person signs in at a shared address, is shown what it names, and signs out.
import { equal, match } from "node:assert/strict";

import { address, clientId, clientSecret, signIn, story } from "./browser.mjs";

await story(async (page) => {
  await page.goto(`${address}/devices?q=meter`);
  await page.getByLabel("Client id").fill(clientId);
  await page.getByLabel("Client secret").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  match(await page.getByRole("alert").innerText(), /credentials are wrong/);

  await page.getByLabel("Client secret").fill(clientSecret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "meter-1" }).waitFor();
  equal(await page.getByLabel("Search").inputValue(), "meter", "the shared address is shown");

  const cookies = await page.context().cookies();
  equal(cookies.length, 1);
  equal(cookies[0].name, "signalbox-session");
  equal(cookies[0].httpOnly, true);
  equal(cookies[0].sameSite, "Strict");
  equal(await page.evaluate(() => document.cookie), "", "no script reads it");

  await page.reload();
  await page.getByRole("link", { name: "meter-1" }).waitFor();
  await page.getByRole("button", { name: /Signed in as/ }).click();
  await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  equal((await page.context().cookies()).length, 0);

  // A one-time code signs in, and leaves the address and the history.
  const answer = await page.request.post(`${address}/codes`, {
    data: { clientId, clientSecret },
  });
  const { code } = await answer.json();
  await page.goto(`${address}#code=${code}`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  match(page.url(), /\/console\/?$/);

  // A session that ends elsewhere ends here, without a reload.
  const other = await page.context().browser().newContext();
  const second = await other.newPage();
  await signIn(second);
  await second.getByRole("button", { name: /Signed in as/ }).click();
  await second.getByRole("menuitem", { name: "Sign out everywhere" }).click();
  await second.getByRole("button", { name: "Sign in" }).waitFor();
  await page.getByRole("alert").getByText("session has ended").waitFor();
});
