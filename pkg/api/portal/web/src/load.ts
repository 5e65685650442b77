// Loading what a page shows.
import { useCallback, useEffect, useState } from "preact/hooks";
import { api, type Client } from "./api";
import { inTurn } from "./poll";
import { useMe } from "./session";

export interface Loaded<T> {
  data?: T;
  error?: Error;
  reload: () => void;
}

// Again is whether a page asks again while it can be seen: live is in turn with all tabs of
// the browser, and soon, which follows what the user has just done, every second for the first ten.
type Again = "" | "live" | "soon";

const second = 1000;

// useLoad calls load at once, whenever one of the inputs changes, and again with a client that
// asks at such times. What was loaded before stays until the next answer, and when that is an
// error for as long as the inputs are those that it is of; answers that came too late are dropped.
export function useLoad<T>(load: (from: Client) => Promise<T>, inputs: unknown[], again: Again = ""): Loaded<T> {
  const rights = JSON.stringify(useMe());
  const [state, setState] = useState<{ data?: T; error?: Error; of?: string }>({});
  const [turn, setTurn] = useState(0);
  const of = JSON.stringify(inputs);
  const reload = useCallback(() => setTurn((n) => n + 1), []);

  useEffect(() => {
    const left = new AbortController();
    const polled = inTurn(rights, left.signal);
    const hurries = Date.now() + 10 * second;
    let timer = 0;
    const next = () => run(again === "soon" && Date.now() < hurries && !document.hidden ? api : polled);
    const run = async (from: Client) => {
      const got = await load(from).then(
        (data) => ({ data, of }),
        (error: Error) => ({ error, of }),
      );
      if (left.signal.aborted) return;
      setState((before) => ("data" in got || before.of !== of ? got : { ...before, ...got }));
      if (again) timer = window.setTimeout(next, second);
    };
    void run(api);
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [...inputs, turn, again]);

  return { ...state, reload };
}

// useAction runs what a button does, and says whether it runs and how it failed.
export function useAction() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();
  const run = async (action: () => Promise<unknown>) => {
    setBusy(true);
    setError(undefined);
    try {
      await action();
      return true;
    } catch (failure) {
      setError(failure as Error);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, run };
}
