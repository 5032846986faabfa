// A person signs in at the login page of the identity provider and sees what the rules for their
// groups give; another one, for whose groups there is no rule, is told so.
import { equal, match } from "node:assert/strict";

import { address, expectAccessible, story } from "./browser.mjs";
import { lookAround } from "./looking.mjs";

await story(async (page) => {
  await page.goto(`${address}/devices?q=meter`);
  await logIn(page, "rita");
  await page.getByRole("link", { name: "meter-1" }).waitFor();
  equal(await page.getByLabel("Search").inputValue(), "meter", "the shared address is shown");
  const [cookie, ...others] = (await page.context().cookies(address)).filter(isOurs);
  equal(others.length, 0, "the attempt is over");
  equal(cookie.name, "signalbox-session");
  equal(cookie.httpOnly, true);
  equal(cookie.sameSite, "Strict");

  await lookAround(page, ["actions:read", "devices:read", "integrations:read"]);
  await page.goto(address);
  await page.getByRole("button", { name: /Signed in as/ }).click();
  await page.getByText("Rita Reader").waitFor();
  await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  await page.getByRole("link", { name: "Sign in with Acme accounts" }).waitFor();
  equal((await page.context().cookies(address)).filter(isOurs).length, 0);
  await expectAccessible(page, "the sign-in page");

  await asAnother(page, async (guest) => {
    await guest.goto(address);
    await logIn(guest, "guest");
    await guest.getByRole("heading", { name: "Not signed in" }).waitFor();
    const why = "none of your groups may use this service (everybody)";
    match(await guest.innerText("main"), new RegExp(why.replace(/[()]/g, "\\$&")));
    await expectAccessible(guest, "the refusal");
    await guest.getByRole("link", { name: "Back to signing in" }).click();
    await guest.getByRole("button", { name: "Sign in" }).waitFor();
  });

  await asAnother(page, async (operator) => {
    await operator.goto(address);
    await logIn(operator, "otto");
    await operator.getByRole("link", { name: "Customers" }).click();
    await operator.getByRole("link", { name: "Acme" }).waitFor();
  });
});

/** Goes to the provider, and fills in its form, at first with a wrong password. */
async function logIn(page, name) {
  await page.getByRole("link", { name: "Sign in with Acme accounts" }).click();
  for (const password of ["wrong", "open-sesame"]) {
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Log in" }).click();
    if (password === "wrong") await page.getByText("password is wrong").waitFor();
  }
}

/** Has a person with a browser of their own do something. */
async function asAnother(page, act) {
  const context = await page.context().browser().newContext();
  await act(await context.newPage());
  await context.close();
}

function isOurs({ name }) {
  return name.startsWith("signalbox");
}
