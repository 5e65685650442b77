// One application: its keys, what its tokens may do, and what it uses.
import { useState } from "preact/hooks";
import { api, ask, tagged, type ApiKey, type Application, type FailedRequest, type Match, type Once, type Tagged, type UsageDay } from "../api";
import { Bars, Meter } from "../chart";
import { decide, listOf, textOf, type Editable } from "../edit";
import { count, percent, title } from "../format";
import { readScopes } from "../kinds";
import { useAction, useLoad } from "../load";
import { go, link, type Route } from "../route";
import { can, useMe } from "../session";
import { Facts, Failed, FormDialog, Id, Input, Loading, Notice, Page, Panel, Shown, Status, Table, TextArea, Time, valueOf } from "../ui";
import { Alerts } from "./alerts";
import { ApplicationFields } from "./applications";

const path = (id: string) => ({ params: { path: { id } } });

const editable = (state: Tagged<Application>): Editable<Application> => ({
  state,
  load: () => tagged(api.GET("/developers/applications/{id}", path(state.body.id))),
  values: (a) => ({ name: a.name, description: a.description ?? "", website: a.website ?? "", redirectUri: a.redirectUri ?? "", status: title(a.status), clientSecret: a.clientSecret }),
});

type Opened = "" | "edit" | "rotate" | "delete" | "suspend";

export function ApplicationPage({ path: [id = ""] }: Route) {
  const me = useMe();
  const [opened, setOpened] = useState<Opened>("");
  const [secret, setSecret] = useState("");
  const { data: state, error, reload } = useLoad(() => tagged(api.GET("/developers/applications/{id}", path(id))), [id]);
  const action = useAction();
  if (!state) return <Page title="Application">{error ? <Failed error={error} /> : <Loading />}</Page>;
  const data = state.body;

  const close = () => setOpened("");
  const activate = () =>
    action.run(async () => {
      const post = (match: Match) => ask(api.POST("/developers/applications/{id}/activate", { ...path(id), headers: match }));
      await decide(editable(state), post).finally(reload);
    });
  return (
    <Page
      title={data.name}
      actions={
        can(me, "developers:write") && (
          <>
            {can(me, "developers:admin") &&
              (data.status === "ACTIVE" ? (
                <button type="button" onClick={() => setOpened("suspend")}>
                  Suspend
                </button>
              ) : (
                <button type="button" class="primary" disabled={action.busy} onClick={activate}>
                  Activate
                </button>
              ))}
            <button type="button" onClick={() => setOpened("edit")}>
              Edit
            </button>
            <button type="button" onClick={() => setOpened("rotate")}>
              Rotate the client secret
            </button>
            <button type="button" class="danger" onClick={() => setOpened("delete")}>
              Delete
            </button>
          </>
        )
      }
    >
      <Failed error={action.error ?? error} />
      {data.status === "SUSPENDED" && <Notice>It is suspended: its keys and tokens are refused, and the events of its endpoints are held.</Notice>}
      <Panel title="About it" actions={can(me, "webhooks:read") && <a href={link("endpoints", { applicationId: id })}>Its endpoints</a>}>
        <Facts
          of={[
            ["State", <Status of={data.status} />],
            ["Client id", <Id value={data.clientId} what="the client id" />],
            ["Client secret", <code>{data.clientSecret}</code>],
            ["Description", data.description ?? "–"],
            ["Website", data.website ?? "–"],
            ["Redirect URI", data.redirectUri ?? "–"],
            ["Created", <Time at={data.createdAt} />],
          ]}
        />
      </Panel>
      <Keys application={id} />
      <TokenScopes application={id} />
      <ClientType application={id} />
      {can(me, "webhooks:read") && <Alerts application={id} />}
      <Usage application={data} />
      {can(me, "developers:write") && <FailedRequests application={id} />}
      {opened === "edit" && <Edit of={state} close={close} done={reload} />}
      {opened === "suspend" && <Suspend of={state} close={close} done={reload} />}
      {opened === "rotate" && <Rotate of={state} close={close} done={(made) => { setSecret(made); reload(); }} />}
      {opened === "delete" && <Delete of={state} close={close} />}
      {secret && <Shown title="The new client secret" secrets={[["Client secret", secret]]} close={() => setSecret("")} />}
    </Page>
  );
}

function Keys({ application }: { application: string }) {
  const me = useMe();
  const manages = can(me, "developers:write");
  const [creates, setCreates] = useState(false);
  const [revokes, setRevokes] = useState<ApiKey>();
  const [made, setMade] = useState("");
  const { data, error, reload } = useLoad(
    () => ask(api.GET("/developers/applications/{id}/api-keys", { params: { path: { id: application }, query: { limit: 100 } } })),
    [application],
  );
  return (
    <Panel
      title="API keys"
      actions={
        manages && (
          <button type="button" class="primary" onClick={() => setCreates(true)}>
            Create a key
          </button>
        )
      }
    >
      <Failed error={error} />
      {!data && !error && <Loading />}
      {data && (
        <Table<ApiKey>
          label="API keys"
          rows={data.data}
          id={(k) => k.id}
          empty="There is no key yet. A key reads records."
          columns={[
            { label: "Name", cell: (k) => k.name },
            { label: "Key", cell: (k) => <code>{`${k.prefix}…${k.last4}`}</code> },
            { label: "State", cell: (k) => <Status of={k.status} /> },
            { label: "Reads", cell: (k) => (k.scopes.length === readScopes.length ? "everything" : k.scopes.map((s) => s.replace(":read", "")).join(", ")) },
            { label: "From", cell: (k) => k.allowedNetworks?.join(", ") ?? "everywhere" },
            { label: "Last used", cell: (k) => <Time at={k.lastUsedAt} never="never" /> },
            { label: "Expires", cell: (k) => <Time at={k.expiresAt} never="never" /> },
            {
              label: "Control",
              cell: (k) =>
                manages &&
                k.status === "ACTIVE" && (
                  <button type="button" class="small danger" aria-label={`Revoke ${k.name}`} onClick={() => setRevokes(k)}>
                    Revoke
                  </button>
                ),
            },
          ]}
        />
      )}
      {creates && <CreateKey application={application} close={() => setCreates(false)} done={(key) => { setMade(key); reload(); }} />}
      {revokes && <Revoke apiKey={revokes} close={() => setRevokes(undefined)} done={reload} />}
      {made && <Shown title="The key is there" secrets={[["API key", made]]} close={() => setMade("")} />}
    </Panel>
  );
}

function CreateKey({ application, close, done }: { application: string; close: () => void; done: (key: string) => void }) {
  const create = async (fields: FormData, header: Once) => {
    const expires = valueOf(fields, "expiresAt");
    const networks = valueOf(fields, "allowedNetworks").split(/[\s,]+/).filter(Boolean);
    const key = await ask(
      api.POST("/developers/applications/{id}/api-keys", {
        params: { path: { id: application }, header },
        body: {
          name: valueOf(fields, "name"),
          scopes: fields.getAll("scopes").map(String),
          ...(networks.length > 0 && { allowedNetworks: networks }),
          ...(expires && { expiresAt: new Date(expires).toISOString() }),
        },
      }),
    );
    done(key.key);
  };
  return (
    <FormDialog title="Create a key" submit="Create" act={create} close={close}>
      <Input label="Name" name="name" required maxLength={120} />
      <Checks legend="It reads" name="scopes" all={readScopes} checked={readScopes} />
      <TextArea label="Only from these networks" name="allowedNetworks" rows={2} placeholder="203.0.113.0/24" hint="In CIDR notation, up to 50. Empty: from everywhere." />
      <Input label="Expires" name="expiresAt" type="datetime-local" hint="Empty: never." />
    </FormDialog>
  );
}

function Revoke({ apiKey, close, done }: { apiKey: ApiKey; close: () => void; done: () => void }) {
  const revoke = async (_: FormData, header: Once) => {
    await ask(
      api.POST("/developers/applications/{id}/api-keys/{keyId}/revoke", {
        params: { path: { id: apiKey.applicationId, keyId: apiKey.id }, header },
      }),
    );
    done();
  };
  return (
    <FormDialog title="Revoke the key?" submit="Revoke" danger act={revoke} close={close}>
      <p>
        Whoever uses <strong>{apiKey.name}</strong> is refused from then on. This cannot be undone.
      </p>
    </FormDialog>
  );
}

// Checks are choices of several.
function Checks(props: { legend: string; name: string; all: string[]; checked: string[] }) {
  return (
    <fieldset>
      <legend>{props.legend}</legend>
      <div class="choices">
        {props.all.map((value) => (
          <label class="check" key={value}>
            <input type="checkbox" name={props.name} value={value} defaultChecked={props.checked.includes(value)} /> {value}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function TokenScopes({ application }: { application: string }) {
  const me = useMe();
  const [edits, setEdits] = useState(false);
  const load = () => tagged(api.GET("/developers/applications/{id}/token-scopes", path(application)));
  const { data, error, reload } = useLoad(() => Promise.all([load(), ask(api.GET("/.well-known/oauth-authorization-server"))]), [application]);
  const change = async (fields: FormData, _: Once, match: Match) => {
    await ask(api.PUT("/developers/applications/{id}/token-scopes", { ...path(application), headers: match, body: { scopes: fields.getAll("scopes").map(String) } }));
    reload();
  };
  return (
    <Panel
      title="What its tokens may do"
      actions={
        can(me, "developers:admin") && (
          <button type="button" onClick={() => setEdits(true)}>
            Change
          </button>
        )
      }
    >
      <Failed error={error} />
      {!data && !error && <Loading />}
      {data && <p>{data[0].body.scopes.join(", ")}</p>}
      {edits && data && (
        <FormDialog title="What its tokens may do" submit="Save" edits={{ state: data[0], load, values: ({ scopes }) => ({ scopes }) }} act={change} close={() => setEdits(false)}>
          {(values) => <Checks legend="Scopes" name="scopes" all={data[1].scopes_supported} checked={listOf(values, "scopes")} />}
        </FormDialog>
      )}
    </Panel>
  );
}

const clientTypes = {
  CONFIDENTIAL: "It keeps the client secret, on a server of yours, and gets tokens with it.",
  PUBLIC: "It keeps no secret, as a page in a browser or a program on its user's machine. It gets tokens only in the name of users who let it, by its client id and PKCE.",
};

// ClientType is whether the application keeps a secret.
function ClientType({ application }: { application: string }) {
  const me = useMe();
  const [edits, setEdits] = useState(false);
  const load = () => tagged(api.GET("/developers/applications/{id}/client", path(application)));
  const { data: state, error, reload } = useLoad(load, [application]);
  const change = async (fields: FormData, _: Once, match: Match) => {
    const type = valueOf(fields, "type") as keyof typeof clientTypes;
    await ask(api.PUT("/developers/applications/{id}/client", { ...path(application), headers: match, body: { type } }));
    reload();
  };
  return (
    <Panel
      title="Client type"
      actions={
        state &&
        can(me, "developers:write") && (
          <button type="button" onClick={() => setEdits(true)}>
            Change the type
          </button>
        )
      }
    >
      <Failed error={error} />
      {!state && !error && <Loading />}
      {state && (
        <p>
          <strong>{state.body.type}</strong>: {clientTypes[state.body.type]}
        </p>
      )}
      {edits && state && (
        <FormDialog title="Client type" submit="Save" danger edits={{ state, load, values: ({ type }) => ({ type }) }} act={change} close={() => setEdits(false)}>
          {(values) => (
            <>
              {Object.entries(clientTypes).map(([type, meaning]) => (
                <label class="check" key={type}>
                  <input type="radio" name="type" value={type} defaultChecked={type === textOf(values, "type")} /> {type}: {meaning}
                </label>
              ))}
              <Notice>
                PUBLIC gives up two things: the application gets no more tokens of its own, and only its redirect URI tells it from one that poses as it.
                A change either way ends the refresh of what users allowed before: they are asked again when their tokens end, within the hour.
              </Notice>
            </>
          )}
        </FormDialog>
      )}
    </Panel>
  );
}

// Usage compares what the application asked for with its rate limit.
function Usage({ application }: { application: Application }) {
  const { data, error } = useLoad(
    (from) => ask(from.GET("/developers/applications/{id}/usage", path(application.id))).then((usage) => usage.data),
    [application.id],
    "live",
  );
  const today = data?.at(-1);
  return (
    <Panel title="Usage">
      <Failed error={error} />
      {!data && !error && <Loading />}
      {data && today && (
        <>
          <Facts
            of={[
              ["Limit", `${count(application.rateLimit)} requests in any 60 seconds`],
              ["Requests today", <Today day={today} limit={application.rateLimit} />],
              ["Refused for the limit today", `${count(today.rateLimited)}, ${percent(today.rateLimited, today.requests)}`],
              ["Other errors of the client today", count(today.clientErrors)],
              ["Events today", `${count(today.delivered)} delivered, ${count(today.failed)} failed`],
            ]}
          />
          <Bars
            label="Requests by day"
            good="admitted"
            bad="refused for the limit"
            bars={data.map((day) => ({ at: day.date, good: day.requests - day.rateLimited, bad: day.rateLimited }))}
          />
        </>
      )}
    </Panel>
  );
}

// FailedRequests are the last ones that its programs got an error for.
function FailedRequests({ application }: { application: string }) {
  const { data, error } = useLoad((from) => ask(from.GET("/developers/applications/{id}/failed-requests", path(application))).then((failed) => failed.data), [application], "live");
  return (
    <Panel title="Failed requests">
      <Failed error={error} />
      {!data && !error && <Loading />}
      {data && (
        <Table<FailedRequest>
          label="Failed requests"
          rows={data}
          id={(r) => r.requestId}
          empty="None within 7 days."
          columns={[
            { label: "When", cell: (r) => <Time at={r.at} /> },
            { label: "Answer", cell: (r) => `${r.status} ${r.code}` },
            { label: "Request", cell: (r) => <code>{`${r.method} ${r.path}${r.query.length ? `?${r.query.join("&")}` : ""}`}</code> },
            { label: "Request id", cell: (r) => <code>{r.requestId}</code> },
          ]}
        />
      )}
    </Panel>
  );
}

// Today is the part of what the limit permits by now.
function Today({ day, limit }: { day: UsageDay; limit: number }) {
  const minutes = Math.max(1, (Date.now() - Date.parse(day.date)) / 60_000);
  const most = limit * minutes;
  return (
    <>
      {count(day.requests)}, {percent(day.requests, most)} of what the limit permits until now
      <Meter value={day.requests} max={most} label="Part of the limit used today" />
    </>
  );
}

function Edit({ of, close, done }: { of: Tagged<Application>; close: () => void; done: () => void }) {
  const save = async (fields: FormData, _: Once, match: Match) => {
    await ask(
      api.PATCH("/developers/applications/{id}", {
        ...path(of.body.id),
        headers: match,
        body: { name: valueOf(fields, "name"), description: valueOf(fields, "description") || null, website: valueOf(fields, "website") || null, redirectUri: valueOf(fields, "redirectUri") || null },
      }),
    );
    done();
  };
  return (
    <FormDialog title="Edit the application" submit="Save" edits={editable(of)} act={save} close={close}>
      {(values) => <ApplicationFields of={values} />}
    </FormDialog>
  );
}

function Suspend({ of, close, done }: { of: Tagged<Application>; close: () => void; done: () => void }) {
  const suspend = async (_: FormData, header: Once, match: Match) => {
    await ask(api.POST("/developers/applications/{id}/suspend", { params: { path: { id: of.body.id }, header }, headers: match }));
    done();
  };
  return (
    <FormDialog title="Suspend the application?" submit="Suspend" danger edits={editable(of)} act={suspend} close={close}>
      <p>Within seconds its keys and tokens are refused, and the events of its endpoints are held until it is active again.</p>
    </FormDialog>
  );
}

function Rotate({ of, close, done }: { of: Tagged<Application>; close: () => void; done: (secret: string) => void }) {
  const rotate = async (_: FormData, header: Once, match: Match) => {
    const rotated = await ask(api.POST("/developers/applications/{id}/rotate-secret", { params: { path: { id: of.body.id }, header }, headers: match }));
    done(rotated.clientSecret);
  };
  return (
    <FormDialog title="Rotate the client secret?" submit="Rotate" edits={editable(of)} act={rotate} close={close}>
      <p>For 24 hours both secrets work.</p>
    </FormDialog>
  );
}

function Delete({ of, close }: { of: Tagged<Application>; close: () => void }) {
  const remove = async (_: FormData, __: Once, match: Match) => {
    await ask(api.DELETE("/developers/applications/{id}", { ...path(of.body.id), headers: match }));
    go(link("applications"));
  };
  return (
    <FormDialog title="Delete the application?" submit="Delete" danger edits={editable(of)} act={remove} close={close}>
      <p>
        <strong>{of.body.name}</strong> goes with its keys and endpoints. This cannot be undone.
      </p>
    </FormDialog>
  );
}
