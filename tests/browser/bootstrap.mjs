// A person says what devices are given at their bootstrap, gives one of them something else, and sees at which step
// its bootstrap failed.
import { address, expectAccessible, signIn, story, wishAndWait } from "./browser.mjs";

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

  await page.goto(`${address}/settings`);
  await card.getByRole("button", { name: "Remove the configuration" }).click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await card.getByText("Nothing is configured.").waitFor();
});
