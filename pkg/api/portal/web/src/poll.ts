// Polling: pages ask again for what they show. The tabs of a browser take turns, so that all
// of them together ask once in five seconds, and one that nobody sees does not ask. What one
// tab is answered the others take, too, as far as they ask the same with the same rights.
import { clientWith, type Client } from "./api";

const pace = 5000;

type Use = () => Promise<boolean>;
type Lock = (name: string, of: { signal: AbortSignal }, use: Use) => Promise<boolean>;

// Browsers have no locks for pages that came without TLS: there each tab keeps the pace alone.
const alone: Lock = async (_, of, use) => of.signal.aborted || use();
let lock = alone;
let tabs: BroadcastChannel | undefined;

// joinTabs has the page share its polls. That of a portal session does not: it has nothing to do
// with others of its origin, and browsers keep locks from frames of other sites.
export function joinTabs() {
  tabs = new BroadcastChannel("polls");
  if (navigator.locks) lock = navigator.locks.request.bind(navigator.locks) as Lock;
}

// Answer is one that a tab tells the others; of is the rights and the address that it is for.
interface Answer {
  of: string;
  headers: [name: string, value: string][];
  body: string;
}

// inTurn is a client that waits with each request for a turn of the tab, until the page is left.
export function inTurn(rights: string, left: AbortSignal): Client {
  const of = (request: Request) => `${rights} ${request.url}`;
  return clientWith({
    onRequest: ({ request }) => turn(of(request), left),
    async onResponse({ request, response }) {
      if (tabs && response.status === 200) tabs.postMessage({ of: of(request), headers: [...response.headers], body: await response.clone().text() } satisfies Answer);
    },
  });
}

let last: Promise<unknown> = Promise.resolve(); // turn that the tab waits for: it waits for one at a time

// turn waits until the tab may ask, or for the answer if another tab has it sooner.
function turn(of: string, left: AbortSignal): Promise<Response | undefined> {
  const over = new AbortController();
  const signal = AbortSignal.any([left, over.signal]);
  return new Promise((resolve) => {
    const end = (answer?: Response) => {
      over.abort();
      resolve(answer);
    };
    tabs?.addEventListener("message", ({ data }: MessageEvent<Answer>) => data.of === of && end(new Response(data.body, data)), { signal });
    last = last.then(() => taken(signal, end)).catch(() => {}); // over before its time
  });
}

// taken calls begin when it is the tab's turn, which lasts until another may ask.
async function taken(signal: AbortSignal, begin: () => void) {
  const use = async () => {
    if (document.hidden) return false;
    begin();
    await new Promise((later) => setTimeout(later, pace));
    return true;
  };
  do await shown();
  while (!(await lock("polls", { signal }, use)));
}

// shown waits until the tab can be seen.
const shown = () =>
  new Promise<void>((resolve) => {
    if (!document.hidden) return resolve();
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
