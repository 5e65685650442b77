// The authorization endpoint: an application asks the user to act in the user's name.
import { useEffect, useState } from "preact/hooks";
import { api, ask, once } from "../api";
import { useAction, useLoad } from "../load";
import { kindOf, useMe } from "../session";
import { Facts, Failed, Loading, Notice, Page } from "../ui";
import { abilities } from "./you";

export function Authorize({ signOut }: { signOut: () => void }) {
  const me = useMe();
  const request = location.search.slice(1); // where a sign-in at the provider came back to
  const { busy, error, run } = useAction();
  const [leaves, setLeaves] = useState(false);
  const asked = useLoad(async () => (kindOf(me) === "user" ? ask(api.POST("/developers/grants", { body: { request } })) : undefined), [me]);
  const leave = (to: string) => {
    setLeaves(true);
    location.replace(to);
  };
  // A request with a fault is answered without asking the user.
  useEffect(() => {
    if (asked.data?.redirectTo) leave(asked.data.redirectTo);
  }, [asked.data]);
  const decide = (allow: string[]) =>
    run(async () => {
      const decided = await ask(api.POST("/developers/grants", { params: { header: once() }, body: { request, allow } }));
      leave(decided.redirectTo!);
    });
  const of = asked.data;
  if (leaves || !of || asked.error) {
    return (
      <Page title="An application asks for access">
        <Failed error={asked.error} />
        {kindOf(me) === "user" ? !asked.error && <Loading /> : <Notice>Only a user can let an application in: sign in with a user's token.</Notice>}
        <button type="button" onClick={signOut}>
          Sign in as somebody else
        </button>
      </Page>
    );
  }
  return (
    <Page title={`${of.applicationName} asks for access`}>
      <p>If you allow it, it can do this in your name for 30 days, or until you end it under “You” in the portal:</p>
      <ul>
        {of.scopes.map((scope) => (
          <li key={scope}>{abilities.find(([name]) => name === scope)?.[1] ?? scope}</li>
        ))}
      </ul>
      {of.scopes.includes("webhooks:write") && <Notice>Endpoints that it makes go on receiving events after that, until they are deleted.</Notice>}
      {me.siteIds && <Notice>Of your {me.siteIds.length} sites only.</Notice>}
      <Facts
        of={[
          ["Website", of.website ?? "–"],
          ["Organization", <code>{of.organizationId}</code>],
          ["You go back to", <code>{of.redirectUri}</code>],
        ]}
      />
      <Failed error={error} />
      <div class="actions">
        <button type="button" disabled={busy} onClick={() => decide([])}>
          Decline
        </button>
        <button type="button" class="primary" disabled={busy} onClick={() => decide(of.scopes)}>
          Allow
        </button>
      </div>
    </Page>
  );
}
