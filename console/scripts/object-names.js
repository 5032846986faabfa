// Which names do objects and resources have? Makes one JSON file of the registry's table.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const source = new URL("../../protocol/data/oma-objects.csv", import.meta.url);
const target = new URL("../generated/objects.json", import.meta.url);

/** The records of a CSV text (RFC 4180). */
function records(text) {
  const found = [];
  for (const line of text.matchAll(/((?:"(?:[^"]|"")*"|[^"\n])*)\n/g)) {
    const fields = [...line[1].matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)];
    found.push(fields.map(([, quoted, plain]) => (quoted?.replaceAll('""', '"') ?? plain).trim()));
  }
  return found;
}

const [head, ...rows] = records(readFileSync(source, "utf8"));
const objects = {};
for (const row of rows) {
  const column = (name) => row[head.indexOf(name)] ?? "";
  // Later lines are newer versions: a resource keeps its meaning over the versions of its object.
  const object = (objects[column("object_id")] ??= { name: "", resources: {} });
  object.name = column("object_name");
  const resource = [column("resource_name"), column("operations"), column("type"), column("units")];
  if (column("resource_instances") === "multiple") resource.push(1);
  object.resources[column("resource_id")] = resource;
}
mkdirSync(new URL(".", target), { recursive: true });
writeFileSync(target, JSON.stringify(objects));
