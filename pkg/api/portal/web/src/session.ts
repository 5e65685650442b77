// Who is signed in, and what that permits.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Me } from "./api";

export const Session = createContext<Me>(null as unknown as Me);
export const useMe = () => useContext(Session);

// kindOf tells what credential someone is signed in with.
export function kindOf(me: Me): "user" | "application" | "API key" {
  if (!me.applicationId) return "user";
  return me.keyId ? "API key" : "application";
}

// why says why the credential may not do what takes the scope; "" if it may.
export function why(me: Me, scope: string): string {
  const kind = kindOf(me);
  const area = scope.split(":")[0];
  if (area === "developers" && kind !== "user") return `Applications take a user's token; you are signed in with an ${kind === "application" ? "application's token" : kind}.`;
  if ((area === "webhooks" || area === "records") && kind === "API key") return "Webhooks and posted records take a user's or an application's token; you are signed in with an API key, which reads records.";
  if (!me.scopes.includes(scope)) return `Your credential lacks the scope ${scope}.`;
  if (me.siteIds && (area === "developers" || area === "webhooks" || area === "records")) return "Your credential is limited to sites; applications, webhooks and posted records concern every site.";
  return "";
}

export const can = (me: Me, scope: string) => why(me, scope) === "";
