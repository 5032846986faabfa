// Which mistakes does a machine find in the sources of the console?
import js from "@eslint/js";
import query from "@tanstack/eslint-plugin-query";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  { ignores: ["dist", "generated", "scripts", "eslint.config.js"] },
  js.configs.recommended,
  typescript.configs.strictTypeChecked,
  hooks.configs.flat["recommended-latest"],
  query.configs["flat/recommended"],
  {
    languageOptions: {
      parserOptions: { project: "./tsconfig.lint.json", tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // The router redirects by throwing what it returns.
      "@typescript-eslint/only-throw-error": "off",
    },
  },
);
