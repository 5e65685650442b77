// Pages are named by the fragment of the address: #/endpoints/ID?filter=value.
// No server sees it.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  path: string[];
  query: URLSearchParams;
}

function current(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

// decoded is a segment as it stands where it is malformed: no page has that name.
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const changed = () => setRoute(current());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

// link is the address of a page.
export function link(path: string, query: Record<string, string> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  return `#/${path}${given.length ? "?" + new URLSearchParams(given) : ""}`;
}

export const go = (address: string) => location.assign(address);

// tokenOfLink takes a token out of the address that make run prints. Elsewhere
// than on this machine no link can sign anybody in: it could be someone else's.
export function tokenOfLink(): string {
  const token = /^#token=([\w.-]+)$/.exec(location.hash)?.[1];
  if (!token) return "";
  history.replaceState(null, "", location.pathname + location.search);
  return ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname) ? token : "";
}
