// Loading what a page shows.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  data?: T;
  error?: Error;
  reload: () => void;
}

// useLoad calls load at once, whenever one of the inputs changes, and, with
// every, again after so many milliseconds while the page can be seen. What was
// loaded before stays until the next answer, and when that is an error for as
// long as the inputs are those that it is of; answers that came too late are dropped.
export function useLoad<T>(load: () => Promise<T>, inputs: unknown[], every = 0): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Error; of?: string }>({});
  const [turn, setTurn] = useState(0);
  const newest = useRef(0);
  const of = JSON.stringify(inputs);
  const reload = useCallback(() => setTurn((n) => n + 1), []);

  useEffect(() => {
    const mine = ++newest.current;
    let timer = 0;
    const run = async () => {
      if (document.hidden && every > 0) return;
      const next = await load().then(
        (data) => ({ data, of }),
        (error: Error) => ({ error, of }),
      );
      if (mine !== newest.current) return;
      setState((before) => ("data" in next || before.of !== of ? next : { ...before, ...next }));
      if (every > 0) timer = window.setTimeout(run, every);
    };
    const shown = () => {
      if (document.hidden || every === 0) return;
      clearTimeout(timer);
      void run();
    };
    void run();
    document.addEventListener("visibilitychange", shown);
    return () => {
      newest.current++;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [...inputs, turn, every]);

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
