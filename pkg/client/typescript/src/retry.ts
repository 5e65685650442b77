const firstWait = 500; // ms, without Retry-After

/** repeat sends the request until it is answered, as retries of Options says. */
export async function repeat(request: Request, send: (request: Request) => Promise<Response>, retries: number): Promise<Response> {
  for (let repeated = 0; ; repeated++) {
    let answer: Response | undefined;
    let failure: unknown;
    try {
      answer = await send(request.clone());
    } catch (error) {
      failure = error;
    }
    const wait = waitBeforeNext(request.method, answer, repeated);
    if (wait === undefined || repeated >= retries) {
      if (answer) return answer;
      throw failure;
    }
    await answer?.body?.cancel();
    await delay(wait, request.signal);
  }
}

// waitBeforeNext is how many ms to wait; undefined when a repetition cannot help.
function waitBeforeNext(method: string, answer: Response | undefined, repeated: number): number | undefined {
  // Half of the wait is random, so that clients do not come back at once.
  const wait = firstWait * 2 ** repeated * (0.5 + Math.random() / 2);
  if (!answer) return method === "PATCH" ? undefined : wait;
  const told = retryAfter(answer.headers.get("Retry-After"));
  switch (answer.status) {
    case 429:
      return told ?? wait;
    case 502:
    case 503:
    case 504:
      return method === "PATCH" ? undefined : (told ?? wait);
    case 409: // while the first one of an Idempotency-Key runs
      return told;
    default:
      return undefined;
  }
}

// retryAfter reads seconds, or a date, as ms from now.
function retryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

async function delay(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
  });
}
