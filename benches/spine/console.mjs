// How long do the views of the console take? Opens each several times in Chromium, and prints what the browser
// measured as one line of JSON.
import { address, signIn, story } from "../../tests/browser/browser.mjs";

const rounds = Number(process.env.ROUNDS);
/** The ids of devices that are looked at, one in each round. */
const devices = process.env.DEVICE_IDS.split(",");
/** How many devices are not registered. */
const { UNREGISTERED } = process.env;

/** How much slower the processor is while the start of the console is measured. */
const throttling = 4;

const times = {};
const note = (view, way, ms) => ((times[view] ??= {})[way] ??= []).push(ms);

/** What is shown once a view has its content: where, and which text. */
const content = {
  overview: ["main", /Offline(more than )?\d[^]*Cancelled\d/],
  list: ["tbody", /\d/],
  search: ["[role=status]", /^1 device$/],
  filter: ["[role=status]", new RegExp(`^${UNREGISTERED} devices$`)],
  inspector: ["section", /^Registration/],
  resources: ["summary", /Instance/],
};

/** As the browser is sent it. */
const sent = ([selector, text]) => [selector, text.source];

const calls = {};
await story(async (page) => {
  await watch(page);
  await signIn(page);
  for (let round = 0; round < rounds; round += 1) {
    const device = devices[round % devices.length];
    await views(page, device);
    for (const [view, path] of Object.entries(paths(device))) {
      note(view, "address", await openedIn(page, path, content[view]));
      await noteCalls(page, view);
    }
  }
});
await story(async (page) => {
  await watch(page);
  await start(page, "signIn", ["button[type=submit]", /Sign in/]);
  await signIn(page);
  await start(page, "overview", content.overview);
});
console.log(`measured ${JSON.stringify({ times, calls })}`);

function paths(device) {
  return {
    overview: "",
    list: "/devices",
    search: `/devices?q=${device}`,
    filter: "/devices?registered=false",
    inspector: `/devices/${device}`,
    resources: `/devices/${device}/resources`,
  };
}

/** Goes from view to view as a person does, without loading the page again. */
async function views(page, device) {
  await openedIn(page, "", content.overview);
  note("list", "console", await after(page, "follow", 'nav a[href="/console/devices"]', "list"));
  note("search", "console", await after(page, "search", device, "search"));
  const link = `a[href="/console/devices/${device}"]`;
  note("inspector", "console", await after(page, "follow", link, "inspector"));
  const resources = `a[href="/console/devices/${device}/resources"]`;
  note("resources", "console", await after(page, "follow", resources, "resources"));
  await openedIn(page, "/devices", content.list);
  note("filter", "console", await after(page, "choose", "false", "filter"));
}

/** Has each page of the browser say when a text is on it. */
async function watch(page) {
  await page.addInitScript(() => {
    globalThis.shown = ([selector, source]) => {
      const text = new RegExp(source);
      const isShown = () =>
        [...document.querySelectorAll(selector)].some((it) => text.test(it.textContent.trim()));
      return new Promise((resolve) => {
        const look = () => {
          if (!isShown()) return false;
          resolve(performance.now());
          return true;
        };
        if (look()) return;
        const observer = new MutationObserver(() => {
          if (look()) observer.disconnect();
        });
        observer.observe(document, { subtree: true, childList: true, characterData: true });
      });
    };
    globalThis.acts = {
      follow: (link) => document.querySelector(link).click(),
      search: (text) => {
        const field = document.querySelector('input[name="q"]');
        field.value = text;
        field.form.requestSubmit();
      },
      choose: (value) => {
        const options = [...document.querySelectorAll("select")];
        const select = options.find((it) => [...it.options].some((one) => one.value === value));
        Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(
          select,
          value,
        );
        select.dispatchEvent(new Event("change", { bubbles: true }));
      },
    };
  });
}

/** Opens an address; the milliseconds from the navigation until its content is shown. */
async function openedIn(page, path, expected) {
  await page.goto(address + path, { waitUntil: "commit" });
  return page.evaluate((it) => globalThis.shown(it), sent(expected));
}

/** Acts on a view; the milliseconds until the content of the next one is shown. */
function after(page, act, on, view) {
  return page.evaluate(
    async ([act, on, expected]) => {
      const begun = performance.now();
      globalThis.acts[act](on);
      return (await globalThis.shown(expected)) - begun;
    },
    [act, on, sent(content[view])],
  );
}

/** Makes the calls of the view that is shown again, each alone. */
async function noteCalls(page, view) {
  const made = await page.evaluate(async () => {
    const isCall = ({ name }) => name.includes("/console/api/") && !name.includes("/stream");
    const urls = performance.getEntriesByType("resource").filter(isCall);
    const took = {};
    for (const url of new Set(urls.map(({ name }) => name))) {
      const begun = performance.now();
      await (await fetch(url)).arrayBuffer();
      took[new URL(url).pathname + new URL(url).search] = performance.now() - begun;
    }
    return took;
  });
  for (const [path, ms] of Object.entries(made)) {
    const shown = path.replace("/console/api", "").replaceAll(/\d{19}/g, "ID");
    const key = shown.replaceAll(/=20\d\d-[^&]*/g, "=TIME");
    ((calls[view] ??= {})[key] ??= []).push(ms);
  }
}

/** The start of the console with nothing cached: its size, and when it can be used on a slow processor. */
async function start(page, view, expected) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  let bytes = 0;
  devtools.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  for (let round = 0; round < rounds; round += 1) {
    bytes = 0;
    await devtools.send("Emulation.setCPUThrottlingRate", { rate: throttling });
    await page.goto(address, { waitUntil: "commit" });
    const usable = await page.evaluate(async (it) => {
      await globalThis.shown(it);
      // The page can be used once its thread has nothing else to do.
      await new Promise((resolve) => requestIdleCallback(resolve));
      return performance.now();
    }, sent(expected));
    await devtools.send("Emulation.setCPUThrottlingRate", { rate: 1 });
    note(view, "throttled", usable);
    note(view, "kilobytes", bytes / 1_000);
  }
  await devtools.detach();
}
