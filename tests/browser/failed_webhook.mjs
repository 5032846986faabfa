// A person sees why a webhook failed, restarts it once it is mended, and replays its dead letters.
import { signIn, story, wishAndWait } from "./browser.mjs";

await story(async (page) => {
  await signIn(page, "/integrations");
  await page.getByText("the endpoint answered 500").waitFor();
  await page.getByRole("link", { name: "Warehouse" }).click();
  await page.getByRole("heading", { name: "Dead letters (1)" }).waitFor();
  await page.getByRole("button", { name: "Send a test event" }).click();
  await page
    .getByText(/answered 500/)
    .nth(2)
    .waitFor();

  await wishAndWait("the endpoint is mended");
  await page.getByRole("button", { name: "Restart" }).click();
  await page.getByText("Active", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Replay all" }).click();
  await page.getByRole("heading", { name: "Dead letters (0)" }).waitFor();
  await page.getByText("Everything was accepted.").waitFor();
});
