// Compresses the built files for their whole life: the service sends them as they are.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

/** The most that the first view may take, compressed: it is to be there at once on a phone. */
const firstViewBytesMax = 200_000;

const assets = new URL("../dist/assets/", import.meta.url);
for (const name of readdirSync(assets)) {
  const file = new URL(name, assets);
  writeFileSync(new URL(`${name}.gz`, assets), gzipSync(readFileSync(file), { level: 9 }));
}

const page = readFileSync(new URL("../dist/index.html", import.meta.url), "utf8");
const loaded = [...page.matchAll(/(?:src|href)="\/console\/assets\/([^"]+)"/g)].map(
  ([, name]) => name,
);
const sizes = loaded.map((name) => statSync(new URL(`${name}.gz`, assets)).size);
const bytes = sizes.reduce((sum, size) => sum + size, page.length);
if (bytes > firstViewBytesMax) {
  throw new Error(`the first view takes ${bytes} bytes, more than ${firstViewBytesMax}`);
}
