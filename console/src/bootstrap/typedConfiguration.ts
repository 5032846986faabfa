// Which bootstrap configuration was typed?
import type { Schemas } from "../api/client";
import { given } from "../ui/search";
import type { Typed } from "../ui/typed";
import type { Configuration, Server } from "./query";

/** The name of a field of the server at a place. */
export const fieldOf = (property: keyof Server, place: number) => `${property}-${place}`;

/**
 * The configuration that was typed for the servers at these places, or what is wrong with it. What the
 * form does not have of a server stays as it was.
 */
export function configurationOf(
  places: readonly number[],
  typed: Typed,
  was: readonly Server[] = [],
): { body: Schemas["NewBootstrapConfiguration"] } | { fault: string } {
  const servers = places.map((place) => {
    const text = (property: keyof Server) => typed(fieldOf(property, place));
    const isCertified = text("security") === "X509";
    return given({
      ...was[place],
      shortId: Number(text("shortId")),
      uri: text("uri"),
      lifetime: Number(text("lifetime")),
      binding: text("binding"),
      security: text("security"),
      certificate: isCertified ? text("certificate") : undefined,
      key: isCertified ? text("key") : undefined,
    }) as Server;
  });
  const objects = objectsOf(typed("objects"));
  if (objects === "no object") {
    return { fault: 'The values are no JSON object, such as {"/3/0/15": "Europe/Berlin"}.' };
  }
  return { body: given({ servers, objects }) as Schemas["NewBootstrapConfiguration"] };
}

function objectsOf(text: string | undefined): Record<string, unknown> | undefined | "no object" {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : "no object";
  } catch {
    return "no object";
  }
}

/** The values of a configuration as they are typed. */
export function objectsText({ objects }: Pick<Configuration, "objects">): string {
  return objects === undefined || Object.keys(objects).length === 0
    ? ""
    : JSON.stringify(objects, null, 2);
}
