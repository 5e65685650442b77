// Who is signed in, and what the credential may do.
import type { ComponentChildren } from "preact";
import { count } from "../format";
import { lists } from "../kinds";
import { can, kindOf, useMe, why } from "../session";
import { Facts, Id, Page, Panel, Status, Table } from "../ui";

const abilities: [scope: string, what: string][] = [
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
