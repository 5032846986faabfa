// Which devices is something about: those that were selected, or all that match a filter?
import type { Schemas } from "../api/client";
import { readDeviceSearch } from "../devices/DevicesPage";
import { type DeviceSearch, filterOf } from "../devices/query";
import { type Search, given, text } from "../ui/search";

/** Which devices a view is about: those of `ids`, or those that match the rest. */
export interface AskedSearch extends DeviceSearch {
  ids?: string;
}

/** Which devices are asked: those of a list, or those that match. */
export type Asked = { deviceIds: string[] } | { filter: Schemas["DeviceFilter"] };

export function readAskedSearch(search: Search): AskedSearch {
  // The page of a list is no filter.
  const filter = readDeviceSearch({ ...search, cursor: undefined });
  return { ...filter, ...given({ ids: text(search, "ids") }) };
}

export function askedOf({ ids, ...filter }: AskedSearch): Asked {
  if (ids === undefined) return { filter: filterOf(filter) };
  return { deviceIds: ids.split(",").filter(Boolean) };
}
