// Which objects, instances and resources does a device have, and what are they called?
import type { Schemas } from "../api/client";

/** What is known of a resource, from the registry or from the customer's own definition. */
export interface ResourceInfo {
  name: string;
  /** Some of R, W and E. */
  operations: string;
  type: string;
  units: string;
}

/** What is known of an object. */
export interface ObjectInfo {
  name: string;
  resources: ReadonlyMap<number, ResourceInfo>;
}

/** A resource of an instance, with the values of its instances. */
export interface ResourceNode {
  id: number;
  path: string;
  info: ResourceInfo | undefined;
  values: Schemas["KnownValue"][];
}

/** An instance of an object. */
export interface InstanceNode {
  id: number;
  path: string;
  resources: ResourceNode[];
}

/** An object of a device. */
export interface ObjectNode {
  id: number;
  name: string | undefined;
  version: string | undefined;
  instances: InstanceNode[];
}

/** The objects that a device registered or sent values of, in order. */
export function treeOf(
  registered: readonly Schemas["OfferedObject"][],
  values: readonly Schemas["KnownValue"][],
  infoOf: (object: number) => ObjectInfo | undefined,
): ObjectNode[] {
  const instancesByObject = new Map<number, Set<number>>();
  const valuesByPath = new Map<string, Schemas["KnownValue"][]>();
  const add = (object: number, instance: number) => {
    const known = instancesByObject.get(object) ?? new Set();
    instancesByObject.set(object, known.add(instance));
  };
  for (const object of registered) {
    instancesByObject.set(object.id, new Set());
    for (const instance of object.instances) add(object.id, instance);
  }
  for (const value of values) {
    const [object, instance, resource] = numbersOf(value.path);
    if (object === undefined || instance === undefined || resource === undefined) continue;
    add(object, instance);
    const path = `/${object}/${instance}/${resource}`;
    valuesByPath.set(path, [...(valuesByPath.get(path) ?? []), value]);
  }
  return inOrder(instancesByObject.keys()).map((id) => {
    const info = infoOf(id);
    const instances = inOrder(instancesByObject.get(id) ?? []);
    return {
      id,
      name: info?.name,
      version: registered.find((object) => object.id === id)?.version,
      instances: instances.map((instance) => instanceOf(id, instance, info, valuesByPath)),
    };
  });
}

function instanceOf(
  object: number,
  id: number,
  info: ObjectInfo | undefined,
  valuesByPath: ReadonlyMap<string, Schemas["KnownValue"][]>,
): InstanceNode {
  const path = `/${object}/${id}`;
  const sent = [...valuesByPath.keys()].filter((known) => known.startsWith(`${path}/`));
  const ids = new Set([
    ...(info?.resources.keys() ?? []),
    ...sent.map((known) => numbersOf(known)[2] ?? 0),
  ]);
  const resources = inOrder(ids).map((resource) => ({
    id: resource,
    path: `${path}/${resource}`,
    info: info?.resources.get(resource),
    values: valuesByPath.get(`${path}/${resource}`) ?? [],
  }));
  return { id, path, resources };
}

/** The numbers of a path. */
export function numbersOf(path: string): number[] {
  return path.split("/").filter(Boolean).map(Number);
}

function inOrder(numbers: Iterable<number>): number[] {
  return [...numbers].sort((one, other) => one - other);
}

/** A value as people read it. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "not a number";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What an object is called by its own definition. */
export function infoOfDefinition(definition: Schemas["WholeObjectDefinition"]): ObjectInfo {
  const resources = definition.resources.map((resource): [number, ResourceInfo] => [
    resource.resourceId,
    {
      name: resource.name,
      operations: resource.operations.map((operation) => operation.charAt(0)).join(""),
      type: (resource.type ?? "").toLowerCase(),
      units: resource.units ?? "",
    },
  ]);
  return { name: definition.name ?? "", resources: new Map(resources) };
}

/** What the registry calls its objects; read when the first device is looked at. */
export async function loadRegistry(): Promise<(object: number) => ObjectInfo | undefined> {
  const { default: objects } = await import("../../generated/objects.json");
  const known = new Map<number, ObjectInfo | undefined>();
  return (object) => {
    if (known.has(object)) return known.get(object);
    const found = objects[String(object)];
    const info = found && {
      name: found.name,
      resources: new Map(
        Object.entries(found.resources).map(([id, [name, operations, type, units]]) => [
          Number(id),
          { name, operations, type, units },
        ]),
      ),
    };
    known.set(object, info);
    return info;
  };
}
