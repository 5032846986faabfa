// Starts the console.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { CallFailure } from "./api/client";
import { routerWith } from "./router";
import { whenEnded } from "./session/current";
import { sessionQuery } from "./session/query";
import { applyTheme } from "./shell/theme";
import "./ui/style.css";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      // What the service refuses, it refuses again.
      retry: (failures, error) =>
        failures < 2 &&
        !(error instanceof CallFailure && error.status >= 400 && error.status < 500),
    },
  },
});

whenEnded(() => {
  queries.setQueryData(sessionQuery.queryKey, {
    session: null,
    refusal: "your session has ended: sign in again",
  });
});

applyTheme();
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has the element");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={routerWith(queries)} />
    </QueryClientProvider>
  </StrictMode>,
);
