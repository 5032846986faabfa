// Light or dark? As the system has it, unless this browser was told otherwise.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const key = "signalbox-theme";
const listeners = new Set<() => void>();

function current(): Theme {
  const kept = window.localStorage.getItem(key);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Shows the page in the theme that was chosen. */
export function applyTheme(): void {
  document.documentElement.dataset["theme"] = current();
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") window.localStorage.removeItem(key);
  else window.localStorage.setItem(key, theme);
  applyTheme();
  listeners.forEach((listener) => listener());
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, current);
}
