// A person sees what happens without asking: by the stream of events, and by polling where there is none.
import { address, signIn, story, wish } from "./browser.mjs";

/** The page cannot poll: whatever it shows anew came by the stream. */
function withoutPolling() {
  const real = globalThis.setInterval;
  globalThis.setInterval = (act, ms, ...given) => (ms < 1_000 ? real(act, ms, ...given) : 0);
}

const messages = "/devices/meter-1/messages?path=/3303/0/5700";
const lastOf = (page, value) =>
  page.getByRole("img", { name: new RegExp(`the last one ${value}$`) });

await story(async (page) => {
  await page.addInitScript(withoutPolling);
  const opened = page.waitForResponse(/events\/stream\?.*deviceId=meter-1/);
  await signIn(page, messages);
  await opened;
  // What the page reads when the stream begins may have the first value; the second one comes by an event.
  for (const value of ["23.5", "24.5"]) {
    wish(`the device sends ${value}`);
    await lastOf(page, value).waitFor();
  }

  const inLog = page.waitForResponse(/events\/stream\?.*type=ERROR/);
  await page.goto(`${address}/log`);
  await inLog;
  const entries = page.getByRole("link", { name: "DeviceController[InvalidDataType]" });
  for (const count of [2, 3]) {
    wish(`request ${count} fails`);
    await entries.nth(count - 1).waitFor();
  }

  const inOverview = page.waitForResponse(/events\/stream\?.*type=LIFECYCLE/);
  await page.goto(address);
  await inOverview;
  for (const count of [4, 5]) {
    wish(`request ${count} fails`);
    await page.locator("dl > div").filter({ hasText: "Failed" }).getByText(`${count}`).waitFor();
  }
  // What happened is counted by the minute, too.
  for (const counted of ["Events within the hour", "Requests within the hour"]) {
    const fact = page.locator("dl > div").filter({ hasText: counted });
    await fact.getByText(/^[1-9]/).waitFor();
  }
});

await story(async (page) => {
  const refusal = { status: 409, contentType: "application/json", body: "{}" };
  await page.route(/events\/stream/, (route) => route.fulfill(refusal));
  await signIn(page, messages);
  await lastOf(page, "24.5").waitFor();
  wish("the device sends 25.5");
  await lastOf(page, "25.5").waitFor();
});
