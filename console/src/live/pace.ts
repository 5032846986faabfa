// How often is something done that many events ask for? At once, and after that with a pause in between.

/** Something that is done when it is asked for, and never twice at a time. */
export interface Paced {
  ask: () => void;
  stop: () => void;
}

/** Does something at most once in each pause; what was asked for meanwhile is done once, after it. */
export function paced(act: () => Promise<unknown>, pauseMs: number): Paced {
  let isAsked = false;
  let isBusy = false;
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = async () => {
    isBusy = true;
    while (isAsked && !isStopped) {
      isAsked = false;
      await act().catch(() => undefined);
      await new Promise((passed) => (timer = setTimeout(passed, pauseMs)));
    }
    isBusy = false;
  };
  return {
    ask: () => {
      isAsked = true;
      if (!isBusy) void run();
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
