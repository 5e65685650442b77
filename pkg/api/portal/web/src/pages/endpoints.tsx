// The webhook endpoints, and how to make one.
import { useState } from "preact/hooks";
import { api, ask, type Endpoint, type Once } from "../api";
import { useLoad } from "../load";
import { go, link, type Route } from "../route";
import { can, kindOf, useMe } from "../session";
import { Dialog, Failed, Field, FormDialog, Input, Loading, Page, Pager, Shown, Status, Table, Time, valueOf } from "../ui";
import { listApplications, listEventTypes, statesOf } from "../webhooks";
import { Subscriptions, subscribed } from "./subscriptions";

export function Endpoints({ query }: Route) {
  const me = useMe();
  const page = Number(query.get("page") ?? 1);
  const [creates, setCreates] = useState(false);
  const [created, setCreated] = useState<Endpoint>();
  const { data, error } = useLoad(
    async () => {
      const found = await ask(api.GET("/developers/webhooks/endpoints", { params: { query: { page, applicationId: query.get("applicationId") || undefined } } }));
      return { ...found, states: await statesOf(found.data) };
    },
    [query.toString()],
  );
  return (
    <Page
      title="Endpoints"
      actions={
        can(me, "webhooks:write") && (
          <button type="button" class="primary" onClick={() => setCreates(true)}>
            Create an endpoint
          </button>
        )
      }
    >
      <Failed error={error} />
      {data ? (
        <>
          <Table<Endpoint>
            label="Endpoints"
            rows={data.data}
            id={(e) => e.id}
            empty={`${query.has("applicationId") ? "The application has no endpoint" : "There is no endpoint"} yet. One receives the events that it subscribes to.`}
            columns={[
              { label: "Endpoint", cell: (e) => <a href={link(`endpoints/${e.id}`)}>{e.description || e.url}</a> },
              { label: "URL", cell: (e) => <span class="url">{e.url}</span> },
              { label: "State", cell: (e) => <Status of={data.states.get(e.id)!} /> },
              { label: "Subscribed events", cell: (e) => e.subscribedEvents.join(", ") },
              { label: "Last success", cell: (e) => <Time at={e.lastSuccessAt} never="never" /> },
            ]}
          />
          <Pager meta={data.meta} go={(to) => go(link("endpoints", { page: String(to) }))} />
        </>
      ) : (
        !error && <Loading />
      )}
      {creates && <Create close={() => setCreates(false)} done={setCreated} application={query.get("applicationId") ?? ""} />}
      {created && (
        <Shown
          title="The endpoint is there"
          secrets={[["Signing secret", created.secret]]}
          close={() => go(link(`endpoints/${created.id}`))}
        />
      )}
    </Page>
  );
}

function Create(props: { application: string; close: () => void; done: (created: Endpoint) => void }) {
  const me = useMe();
  const choices = useLoad(
    () => Promise.all([kindOf(me) === "user" ? listApplications() : Promise.resolve([]), listEventTypes()]),
    [],
  );
  const [applications, types] = choices.data ?? [[], []];
  const create = async (fields: FormData, header: Once) => {
    const endpoint = await ask(
      api.POST("/developers/webhooks/endpoints", {
        params: { query: { applicationId: me.applicationId ?? valueOf(fields, "applicationId") }, header },
        body: {
          url: valueOf(fields, "url"),
          description: valueOf(fields, "description") || null,
          events: subscribed(fields),
          retryCount: Number(valueOf(fields, "retryCount")),
          timeoutSeconds: Number(valueOf(fields, "timeoutSeconds")),
        },
      }),
    );
    props.done(endpoint);
  };
  if (choices.data && !me.applicationId && applications.length === 0) {
    return (
      <Dialog title="Create an endpoint" close={props.close}>
        <p>
          An endpoint belongs to an application, and there is none yet.{" "}
          {can(me, "developers:write") ? <a href={link("applications", { create: "1" })}>Create an application</a> : "Somebody with the scope developers:write can create one."}
        </p>
        <div class="actions end">
          <button type="button" onClick={props.close}>
            Cancel
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog title="Create an endpoint" submit="Create" act={create} close={props.close}>
      <Failed error={choices.error} />
      {!me.applicationId && (
        <Field label="Application">
          {(attributes) => (
            <select {...attributes} name="applicationId" required>
              {applications.map((a) => (
                <option key={a.id} value={a.id} selected={a.id === props.application}>
                  {a.name}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Input label="URL" name="url" type="url" required maxLength={2048} placeholder="https://shop.example/webhooks" />
      <Input label="Description" name="description" maxLength={2000} />
      <Subscriptions types={types} selected={["*"]} />
      <div class="filters">
        <Input label="Retries" name="retryCount" type="number" min={0} max={10} value="8" hint="0 to 10." />
        <Input label="Seconds an attempt may take" name="timeoutSeconds" type="number" min={1} max={30} value="15" hint="1 to 30." />
      </div>
    </FormDialog>
  );
}
