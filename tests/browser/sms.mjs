// A person sends an SMS to a device, sees it delivered, cancels another one that the network keeps, and says which
// message wakes the device.
import { equal } from "node:assert/strict";

import { address, signIn, story, wishAndWait } from "./browser.mjs";

await story(async (page) => {
  await signIn(page, "/devices/meter-1");
  await page.getByRole("link", { name: "SMS" }).click();
  await page.getByText("valve open", { exact: true }).waitFor();

  const text = page.getByLabel("Text to 882285100000001");
  await text.fill("a".repeat(161));
  await page.getByText("GSM 7 bit · 161 characters · 2 parts · 145 left").waitFor();
  await text.fill("zażółć");
  await page.getByText("UCS-2 · 6 characters · 1 SMS · 64 left").waitFor();
  const composer = page.getByRole("form", { name: "Send an SMS" });
  await composer.getByLabel("From").fill("1234");
  await page.getByRole("button", { name: "Send" }).click();
  const sent = page.getByRole("listitem").filter({ hasText: "zażółć" });
  await sent.getByText("Pending").waitFor();
  equal(await text.inputValue(), "", "there is room for the next one");

  await wishAndWait("the network delivers it");
  await sent.getByText("Delivered").waitFor();

  await text.fill("close");
  await page.getByRole("button", { name: "Send" }).click();
  const other = page.getByRole("listitem").filter({ hasText: "close" });
  await other.getByText("Pending").waitFor();
  await wishAndWait("the network keeps it in its buffer");
  await other.getByText("Buffered").waitFor();
  await other.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel the SMS" }).click();
  await other.getByText("Cancelled").waitFor();

  const wakeUp = page
    .locator("section")
    .filter({ has: page.getByRole("heading", { name: "Wake-up SMS" }) });
  await wakeUp.getByText("It has none of its own.").waitFor();
  await wakeUp.getByText("Set the message").click();
  await wakeUp.getByLabel("Kind").selectOption("TEXT");
  await wakeUp.getByLabel("From").fill("1234");
  await wakeUp.getByLabel("Text", { exact: true }).fill("come in");
  await wakeUp.getByRole("button", { name: "Save" }).click();
  await wakeUp.getByText("come in", { exact: true }).waitFor();
  await page.reload();
  await wakeUp.getByText("come in", { exact: true }).waitFor();
  await wakeUp.getByRole("button", { name: "Remove the message" }).click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await wakeUp.getByText("It has none of its own.").waitFor();

  // The forwarder is tested where it is set.
  await page.goto(`${address}/integrations`);
  await page.getByRole("link", { name: "SMS forwarder" }).click();
  await page.getByRole("button", { name: "Send a test event" }).click();
  await page.getByText(/answered 500/).waitFor();
});
