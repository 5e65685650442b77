// The applications, and how to make one.
import { useState } from "preact/hooks";
import { api, ask, type Application, type Once } from "../api";
import { textOf, type Values } from "../edit";
import { count } from "../format";
import { useLoad } from "../load";
import { go, link, type Route } from "../route";
import { can, useMe } from "../session";
import { Failed, FormDialog, Input, Loading, Page, Pager, Shown, Status, Table, Time, valueOf } from "../ui";

export function Applications({ query }: Route) {
  const me = useMe();
  const search = query.get("search") ?? "";
  const page = Number(query.get("page") ?? 1);
  const [creates, setCreates] = useState(query.has("create"));
  const [created, setCreated] = useState<Application>();
  const { data, error } = useLoad(
    () => ask(api.GET("/developers/applications", { params: { query: { page, search: search || undefined } } })),
    [query.toString()],
  );
  return (
    <Page
      title="Applications"
      actions={
        can(me, "developers:write") && (
          <button type="button" class="primary" onClick={() => setCreates(true)}>
            Create an application
          </button>
        )
      }
    >
      <form class="filters" role="search" aria-label="Applications" onSubmit={(e) => e.preventDefault()}>
        <Input key={search} label="Search" name="search" type="search" value={search} onChange={(text) => go(link("applications", { search: text.trim() }))} />
      </form>
      <Failed error={error} />
      {data ? (
        <>
          <Table<Application>
            label="Applications"
            rows={data.data}
            id={(a) => a.id}
            empty={query.has("search") ? "No application matches." : "There is no application yet. Endpoints and keys belong to one."}
            columns={[
              { label: "Name", cell: (a) => <a href={link(`applications/${a.id}`)}>{a.name}</a> },
              { label: "State", cell: (a) => <Status of={a.status} /> },
              { label: "Requests a minute", number: true, cell: (a) => count(a.rateLimit) },
              { label: "Created", cell: (a) => <Time at={a.createdAt} /> },
            ]}
          />
          <Pager meta={data.meta} go={(to) => go(link("applications", { search, page: String(to) }))} />
        </>
      ) : (
        !error && <Loading />
      )}
      {creates && <Create close={() => setCreates(false)} done={setCreated} />}
      {created && (
        <Shown
          title="The application is there"
          secrets={[["Client id", created.clientId], ["Client secret", created.clientSecret]]}
          close={() => go(link(`applications/${created.id}`))}
        />
      )}
    </Page>
  );
}

function Create({ close, done }: { close: () => void; done: (created: Application) => void }) {
  const create = async (fields: FormData, header: Once) => {
    const application = await ask(
      api.POST("/developers/applications", {
        params: { header },
        body: { name: valueOf(fields, "name"), description: valueOf(fields, "description") || null, website: valueOf(fields, "website") || null, redirectUri: valueOf(fields, "redirectUri") || null },
      }),
    );
    done(application);
  };
  return (
    <FormDialog title="Create an application" submit="Create" act={create} close={close}>
      <ApplicationFields />
    </FormDialog>
  );
}

// ApplicationFields are what people say of an application.
export function ApplicationFields({ of = {} }: { of?: Values }) {
  return (
    <>
      <Input label="Name" name="name" required maxLength={120} value={textOf(of, "name")} />
      <Input label="Description" name="description" maxLength={2000} value={textOf(of, "description")} />
      <Input label="Website" name="website" type="url" value={textOf(of, "website")} />
      <Input label="Redirect URI" name="redirectUri" type="url" value={textOf(of, "redirectUri")} hint="Where users go back to who let it act in their names." />
    </>
  );
}
