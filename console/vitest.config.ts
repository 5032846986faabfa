// Which tests are there? Those of logic, without a browser; tests/browser has the others.
import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["src/**/*.test.ts"] } });
