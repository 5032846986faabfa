// How is the console built, and where does the development server find the API?
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The service that `npm run dev` calls. */
const service = process.env["SIGNALBOX_API"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  base: "/console/",
  plugins: [react()],
  build: {
    // Every file has an address of its own: the policy of the page allows no data: address.
    assetsInlineLimit: 0,
    // The licences of the packages ask for their texts wherever the code goes.
    license: { fileName: "assets/licences.txt" },
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: {
    proxy: Object.fromEntries(
      [
        "/console/api",
        "/console/session",
        "/console/sessions",
        "/console/codes",
        "/console/oidc",
        "/readyz",
        "/metrics",
      ].map((path) => [path, { target: service, changeOrigin: true }]),
    ),
  },
});
