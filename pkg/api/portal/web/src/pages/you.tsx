// Who is signed in, and what the credential may do.
import type { ComponentChildren } from "preact";
import { api, ask, type Grant } from "../api";
import { count } from "../format";
import { lists } from "../kinds";
import { useAction, useLoad } from "../load";
import { can, kindOf, useMe, why } from "../session";
import { Facts, Failed, Id, Loading, Page, Panel, Status, Table, Time } from "../ui";

export const abilities: [scope: string, what: string][] = [
  ...lists.map((list): [string, string] => [`${list}:read`, `Read ${list}`]),
  ["webhooks:read", "See endpoints, deliveries, and why they failed"],
  ["webhooks:write", "Create and change endpoints, test, recover, redeliver"],
  ["developers:read", "See applications, their keys and usage"],
  ["developers:write", "Create and change applications, create and revoke keys"],
  ["developers:admin", "Suspend applications, and set what their tokens may do"],
  ["records:write", "Post records, and read why some were refused"],
];

export function You() {
  const me = useMe();
  const id: [string, string | null][] = [["User", me.userId], ["Application", me.applicationId], ["API key", me.keyId], ["Organization", me.organizationId]];
  return (
    <Page title="You">
      <Panel title="Who you are">
        <Facts
          of={[
            ["Signed in with", kindOf(me) === "API key" ? "an API key" : `the token of ${kindOf(me) === "user" ? "a user" : "an application"}`],
            ...id.flatMap(([name, value]): [string, ComponentChildren][] => (value ? [[name, <Id value={value} what={name} />]] : [])),
            ["Rate limit", `${count(me.rateLimit)} requests in any 60 seconds`],
            ["Sites", me.siteIds ? me.siteIds.join(", ") : "every site"],
          ]}
        />
      </Panel>
      {kindOf(me) === "user" && <Grants />}
      <Panel title="What you may do">
        <Table<(typeof abilities)[number]>
          label="What you may do"
          rows={abilities}
          id={([scope]) => scope}
          empty=""
          columns={[
            { label: "What", cell: ([, what]) => what },
            { label: "Scope", cell: ([scope]) => <code>{scope}</code> },
            { label: "Permitted", cell: ([scope]) => <Status of={can(me, scope) ? "YES" : "NO"} /> },
            { label: "Why not", cell: ([scope]) => why(me, scope) || "–" },
          ]}
        />
      </Panel>
    </Page>
  );
}

// Grants are what the user lets applications do, and how to end it.
function Grants() {
  const { data, error, reload } = useLoad(() => ask(api.GET("/developers/grants", { params: { query: { limit: 100 } } })), []);
  const action = useAction();
  const end = (grant: Grant) =>
    action.run(async () => {
      await ask(api.DELETE("/developers/applications/{id}/grants/{grantId}", { params: { path: { id: grant.applicationId, grantId: grant.id } } }));
      reload();
    });
  return (
    <Panel title="Applications that act in your name">
      <Failed error={action.error ?? error} />
      {!data && !error && <Loading />}
      {data && (
        <Table<Grant>
          label="Applications that act in your name"
          rows={data.data}
          id={(grant) => grant.id}
          empty="None. An application asks you first."
          columns={[
            { label: "Application", cell: (grant) => (grant.eventScopes ? `${grant.applicationName}, a portal session` : grant.applicationName) },
            { label: "May", cell: (grant) => grant.scopes.join(", ") },
            { label: "Allowed", cell: (grant) => <Time at={grant.createdAt} /> },
            { label: "Last used", cell: (grant) => <Time at={grant.refreshedAt} never="never" /> },
            {
              label: "End it",
              cell: (grant) => (
                <button type="button" class="small danger" disabled={action.busy} aria-label={`Revoke the access of ${grant.applicationName}`} onClick={() => end(grant)}>
                  Revoke
                </button>
              ),
            },
          ]}
        />
      )}
    </Panel>
  );
}
