// Which session do calls belong to, and did a person act since the last one?

let token: string | undefined;
let isActive = true;
let onEnd: () => void = () => undefined;

/** From now on calls belong to the session with this CSRF token. */
export function setToken(csrf: string | undefined): void {
  token = csrf;
}

/** The CSRF token of the session. */
export function csrfToken(): string | undefined {
  return token;
}

/** Calls `end` when the service says that the session has ended. */
export function whenEnded(end: () => void): void {
  onEnd = end;
}

/** The service says that the session has ended. */
export function noteEnd(): void {
  onEnd();
}

/** Whether a person acted since this was asked last: a page that refreshes itself keeps no session. */
export function takeActivity(): boolean {
  const was = isActive;
  isActive = false;
  return was;
}

for (const event of ["pointerdown", "keydown", "visibilitychange"]) {
  document.addEventListener(event, () => (isActive = true), { passive: true });
}
