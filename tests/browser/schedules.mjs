// A person puts a request to all devices that match on a schedule, pauses it, continues it and removes it.
import { expectAccessible, signIn, story } from "./browser.mjs";

await story(async (page) => {
  await signIn(page, "/bulk?q=meter");
  await page.getByRole("link", { name: "On a schedule" }).click();
  await page.getByText("Begins with").waitFor();
  await page.getByLabel("Name").fill("Charge");
  await page.getByLabel("At", { exact: true }).fill("06:30");
  await page.getByLabel("Time zone").fill("Berlin");
  await page.getByLabel("Resource address").fill("/3/0/9");
  await page.getByRole("button", { name: "Create the schedule" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Time zone").fill("Europe/Berlin");
  await page.getByRole("button", { name: "Create the schedule" }).click();
  await page.waitForURL("**/schedules/*");
  await page.getByText("daily at 06:30 in Europe/Berlin").waitFor();
  await page.getByText("read /3/0/9").waitFor();
  await expectAccessible(page, "a schedule");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("Active", { exact: true }).waitFor();

  await page.getByRole("link", { name: "Requests" }).click();
  await page.getByRole("link", { name: "Schedules" }).click();
  await page.getByRole("link", { name: "Charge" }).click();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Remove the schedule" }).click();
  await page.waitForURL("**/schedules");
  await page.getByRole("link", { name: "Battery" }).waitFor();
  await page.getByRole("link", { name: "Charge" }).waitFor({ state: "detached" });

  // At intervals, for devices that are named.
  await page.goto(page.url().replace("/schedules", "/new-schedule?ids=meter-1"));
  await page.getByLabel("Due").selectOption("every");
  await page.getByLabel("Every").fill("2");
  await page.getByLabel("Resource address").fill("/3/0/9");
  await page.getByRole("button", { name: "Create the schedule" }).click();
  await page.getByText("every 2 hours").waitFor();
  await page.getByRole("heading", { name: "Selected devices (1)" }).waitFor();
});
