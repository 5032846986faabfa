// The frame of every view: where one can go, who is signed in, and the way out.
import * as Menu from "@radix-ui/react-dropdown-menu";
import { Link, Outlet } from "@tanstack/react-router";

import { SignIn } from "../session/SignIn";
import {
  type Scope,
  type Session,
  hasScope,
  useSession,
  useSessionState,
  useSignOut,
} from "../session/query";
import { type Theme, chooseTheme, useTheme } from "./theme";

const views = [
  ["/", "Overview", ["devices:read", "actions:read", "logs:read", "integrations:read"]],
  ["/devices", "Devices", ["devices:read"]],
  ["/requests", "Requests", ["actions:read"]],
  ["/firmware", "Firmware", ["devices:read"]],
  ["/log", "Log", ["logs:read"]],
  ["/integrations", "Integrations", ["integrations:read", "plugins:read", "sms:read"]],
  ["/settings", "Settings", ["settings:read"]],
] as const satisfies readonly (readonly [string, string, readonly Scope[]])[];

const operatorViews = [
  ["/customers", "Customers"],
  ["/network", "Network"],
  ["/unknown-senders", "Unknown senders"],
  ["/health", "Health"],
] as const;

export function Shell() {
  const { session } = useSessionState();
  if (session === null) return <SignIn />;
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="bar">
        <Link to="/" className="brand">
          signalbox
        </Link>
        <nav aria-label="Views">
          {viewsOf(session).map(([to, label]) => (
            <Link key={to} to={to} activeOptions={{ includeSearch: false, exact: to === "/" }}>
              {label}
            </Link>
          ))}
        </nav>
        <AccountMenu />
      </header>
      <main id="content">
        <Outlet />
      </main>
    </div>
  );
}

function viewsOf(session: Session): readonly (readonly [string, string, ...unknown[]])[] {
  if (session.role === "OPERATOR") return operatorViews;
  return views.filter(([, , scopes]) => scopes.some((scope) => hasScope(session, scope)));
}

function whoseSession({ role, person, clientId }: Session): string {
  if (person !== undefined) return person;
  return role === "OPERATOR" ? "The operator" : `API client ${clientId ?? ""}`;
}

const themes: [Theme, string][] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function AccountMenu() {
  const session = useSession();
  const signOut = useSignOut();
  const theme = useTheme();
  const who = session.role === "OPERATOR" ? "Operator" : (session.customerId ?? "");
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <button type="button" className="account">
          <span className="visually-hidden">Signed in as </span>
          <span aria-hidden="true">▾ </span>
          {who}
        </button>
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu" align="end" sideOffset={4}>
          <Menu.Label className="muted small">{whoseSession(session)}</Menu.Label>
          <Menu.Item asChild>
            <a href="/docs">Documentation</a>
          </Menu.Item>
          <Menu.Item asChild>
            <a href="/console/assets/licences.txt">Licences</a>
          </Menu.Item>
          <Menu.Separator />
          <Menu.RadioGroup
            value={theme}
            onValueChange={(chosen) => chooseTheme(chosen as Theme)}
            aria-label="Colours"
          >
            {themes.map(([value, label]) => (
              <Menu.RadioItem key={value} value={value}>
                {label}
                <Menu.ItemIndicator> ✓</Menu.ItemIndicator>
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
          <Menu.Separator />
          <Menu.Item onSelect={() => signOut.mutate("here")}>Sign out</Menu.Item>
          <Menu.Item onSelect={() => signOut.mutate("everywhere")}>Sign out everywhere</Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
