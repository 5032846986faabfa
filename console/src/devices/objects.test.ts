import { expect, test } from "vitest";

import { type ObjectInfo, infoOfDefinition, treeOf, valueText } from "./objects";

const temperature: ObjectInfo = {
  name: "Temperature",
  resources: new Map([
    [5700, { name: "Sensor Value", operations: "R", type: "float", units: "" }],
    [5601, { name: "Min Measured Value", operations: "R", type: "float", units: "" }],
  ]),
};

test("the tree has what is registered and what was sent, in the order of numbers", () => {
  const value = (path: string) => ({ path, value: 1, type: "INTEGER", time: "" });
  const tree = treeOf(
    [
      { id: 3303, version: "1.1", instances: [1, 0] },
      { id: 3, instances: [0] },
    ],
    [value("/3303/0/5700"), value("/10241/0/1"), value("/3/0/7/1"), value("/3/0/7/0")],
    (id) => (id === 3303 ? temperature : undefined),
  );
  expect(tree.map((object) => [object.id, object.name, object.version])).toEqual([
    [3, undefined, undefined],
    [3303, "Temperature", "1.1"],
    [10241, undefined, undefined],
  ]);
  expect(tree[1]?.instances.map((instance) => instance.path)).toEqual(["/3303/0", "/3303/1"]);
  const resources = tree[1]?.instances[0]?.resources ?? [];
  expect(resources.map((resource) => [resource.path, resource.values.length])).toEqual([
    ["/3303/0/5601", 0],
    ["/3303/0/5700", 1],
  ]);
  const several = tree[0]?.instances[0]?.resources[0];
  expect(several?.values.map((known) => known.path)).toEqual(["/3/0/7/1", "/3/0/7/0"]);
});

test("an instance of an object is not one of another with the same beginning", () => {
  const values = [{ path: "/3/10/0", value: 1, type: "INTEGER", time: "" }];
  const tree = treeOf([{ id: 3, instances: [1] }], values, () => undefined);
  expect(tree[0]?.instances.map((instance) => instance.resources.length)).toEqual([0, 1]);
});

test("a customer's own definition names its resources", () => {
  const info = infoOfDefinition({
    objectId: 33000,
    version: "1.0",
    name: "Heat Meter",
    updated: "",
    resources: [
      {
        resourceId: 0,
        name: "Flow",
        operations: ["READ", "WRITE"],
        multipleInstances: false,
        mandatory: true,
        type: "FLOAT",
      },
    ],
  });
  expect(info.resources.get(0)).toEqual({
    name: "Flow",
    operations: "RW",
    type: "float",
    units: "",
  });
});

test("values are shown as people read them", () => {
  expect([21.5, true, "text", null].map(valueText)).toEqual([
    "21.5",
    "true",
    "text",
    "not a number",
  ]);
});
