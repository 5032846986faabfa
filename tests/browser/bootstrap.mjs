// A person says what devices are given at their bootstrap, gives one of them something else, sees at which step its
// bootstrap failed, and gives it a certificate.
import { equal } from "node:assert/strict";

import { address, expectAccessible, signIn, story, wishAndWait } from "./browser.mjs";

const { CERTIFICATE, CERTIFICATE_KEY, OTHER_KEY } = process.env;

await story(async (page) => {
  await signIn(page, "/settings");
  const card = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "Bootstrap" }) });
  await card.getByText("Nothing is configured.").waitFor();
  await card.getByText("Configure", { exact: true }).click();
  await card.getByRole("button", { name: "Add a server" }).click();
  const second = card.getByRole("group", { name: "Server 2" });
  await second.getByLabel("Short id").fill("2222");
  await second.getByLabel("URI", { exact: true }).fill("coap://second.example:5683");
  await second.getByLabel("Security").selectOption("NOSEC");
  await card.getByLabel("Further values").fill("/3/0/15");
  await card.getByRole("button", { name: "Save" }).click();
  await card.getByRole("alert").getByText("no JSON object").waitFor();
  await card.getByLabel("Further values").fill('{"/3/0/15": "Europe/Berlin"}');
  await card.getByRole("button", { name: "Save" }).click();
  const servers = card.getByRole("table", { name: "Servers" });
  await servers.getByText("coap://second.example:5683").waitFor();
  await page.reload();
  await servers.getByText("this service").waitFor();
  await card.locator("pre").getByText("Europe/Berlin").waitFor();

  await page.goto(`${address}/devices/boot-1/settings`);
  await card.getByText("Configure", { exact: true }).click();
  await card.getByLabel("Lifetime in seconds").fill("3600");
  await card.getByLabel("Security").selectOption("NOSEC");
  await card.getByRole("button", { name: "Save" }).click();
  await servers.getByText("1 hour").waitFor();

  await wishAndWait("the device refuses the first step of its bootstrap");
  await page.goto(`${address}/devices/boot-1`);
  await page.getByRole("heading", { name: "Last bootstrap" }).waitFor();
  const step = page.getByRole("table", { name: "Steps of the bootstrap" }).getByRole("row");
  await step.filter({ hasText: "Delete /" }).getByText("4.00").waitFor();
  await page.getByText("Failed", { exact: true }).waitFor();
  await expectAccessible(page, "a bootstrap that failed");

  // A certificate is checked. Its key is not shown again, and stays when something else is changed.
  await page.goto(`${address}/devices/boot-1/settings`);
  const change = card.getByText("Change", { exact: true });
  await change.click();
  await card.getByLabel("Security").selectOption("X509");
  await card.getByLabel("Certificate", { exact: true }).fill(CERTIFICATE);
  const key = card.getByLabel("Private key");
  await key.fill(OTHER_KEY);
  await card.getByRole("button", { name: "Save" }).click();
  await card.getByRole("alert").getByText("the certificate is not one of the key").waitFor();
  await key.fill(CERTIFICATE_KEY);
  await card.getByRole("button", { name: "Save" }).click();
  await servers.getByText("Certificate").waitFor();
  await page.reload();
  await change.click();
  equal(await key.inputValue(), "***", "the key is not shown");
  await expectAccessible(page, "a certificate of a bootstrap");
  await card.getByLabel("Lifetime in seconds").fill("7200");
  await card.getByRole("button", { name: "Save" }).click();
  await servers.getByText("2 hours").waitFor();

  await page.goto(`${address}/settings`);
  await card.getByRole("button", { name: "Remove the configuration" }).click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await card.getByText("Nothing is configured.").waitFor();
});
