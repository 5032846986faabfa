// A person asks fifty devices for the same, three of which refuse, and then all that match a filter.
import { equal } from "node:assert/strict";

import { address, signIn, story } from "./browser.mjs";

await story(async (page) => {
  await signIn(page, "/devices?q=pump");
  await page.getByText("50 devices").waitFor();
  await page.getByRole("button", { name: "Select this page" }).click();
  await page.getByText("25 selected").waitFor();
  await page.getByRole("link", { name: "Next page" }).click();
  await page.getByLabel("Select pump-49").waitFor();
  await page.getByRole("button", { name: "Select this page" }).click();
  await page.getByText("50 selected").waitFor();
  await page.getByRole("link", { name: "Request to the selected" }).click();

  await page.getByRole("heading", { name: "Selected devices (50)" }).waitFor();
  await ask(page, "/3/0/0");
  await page.getByRole("button", { name: "Create requests to 50 devices" }).click();
  await page.getByRole("button", { name: "Create them" }).click();
  await page.getByRole("heading", { name: "47 accepted, 3 refused" }).waitFor();
  const refused = page.getByRole("table", { name: "Devices that have none" });
  const codes = await refused.getByText("QUEUE_FULL").count();
  equal(codes, 3, "each refusal has its reason");
  await refused.getByRole("link", { name: "pump-00" }).waitFor();

  // A filter is counted before anything is created.
  await page.goto(`${address}/devices?q=pump-0`);
  await page.getByText("10 devices").waitFor();
  await page.getByRole("link", { name: "Request to all that match" }).click();
  await ask(page, "/3/0/1");
  await page.getByText("Nothing was created yet.").waitFor();
  await page.getByText("pump-09").waitFor();
  await page.getByRole("button", { name: "Create requests to 10 devices" }).click();
  await page.getByRole("button", { name: "Create them" }).click();
  await page.waitForURL("**/jobs/*");
  await page.getByText("10 of 10 devices: 0 accepted, 10 refused.").waitFor();
  await page.getByRole("row").filter({ hasText: "pump-05" }).getByText("Refused").waitFor();

  // A page of a filter may be empty and not the last one.
  await page.goto(`${address}/devices?firmware=none`);
  await page.getByText("No device matches so far.").waitFor();
  await page.getByRole("link", { name: "Look further" }).click();
  await page.getByText("No device matches.").waitFor();

  // A request is repeated from where its outcome is seen.
  await page.goto(`${address}/requests?status=FAILED`);
  await page.getByRole("link", { name: "write /1/0/1 = soon" }).click();
  await page.getByText("As a command line").click();
  await page.getByText('"data":"soon"').waitFor();
  const before = page.url();
  await page.getByRole("button", { name: "Repeat" }).click();
  await page.getByRole("button", { name: "Create the request" }).click();
  await page.waitForURL((url) => url.href !== before);
  await page.getByText("Why it failed").waitFor();
});

async function ask(page, resource) {
  await page.getByLabel("Resource address").fill(resource);
  await page.getByRole("button", { name: "Preview" }).click();
}
