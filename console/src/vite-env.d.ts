// The registry's names, which `scripts/object-names.js` generates.
declare module "*/generated/objects.json" {
  /** Name, operations as in the registry, type, units, and 1 if it has several instances. */
  type Resource = [name: string, operations: string, type: string, units: string, multiple?: 1];
  const objects: Record<string, { name: string; resources: Record<string, Resource> } | undefined>;
  export default objects;
}
