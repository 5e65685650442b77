// The parts that pages share.
import { Fragment, type ComponentChildren, type JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { once, Refusal, type Match, type Meta, type Once } from "./api";
import { useEdit, type Difference, type Editable, type Values } from "./edit";
import { ago, count, fullTime, short, title } from "./format";
import { useAction } from "./load";
import { link } from "./route";

// arrival says whether the next page gets the focus: the first one of a document
// does not, as the browser tells its name.
export const arrival = { focuses: false };

// Page is a page's heading and content. The heading gets the focus as it appears,
// which tells its name to who cannot see that the page is another one.
export function Page(props: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = `${props.title} · Commerce Integration Service`;
  }, [props.title]);
  useLayoutEffect(() => {
    if (arrival.focuses) heading.current?.focus({ preventScroll: true });
    arrival.focuses = true;
    scrollTo(0, 0);
  }, []);
  return (
    <>
      <header class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {props.title}
        </h1>
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </>
  );
}

export function Panel(props: { title: string; actions?: ComponentChildren; children: ComponentChildren; class?: string }) {
  const id = useId();
  return (
    <section class={`panel ${props.class ?? ""}`} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{props.title}</h2>
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </section>
  );
}

// Failed says what went wrong, field by field where the service does, and by which id its
// operators find it.
export function Failed({ error, retry }: { error?: Error; retry?: () => void }) {
  if (!error) return null;
  const { details = [], requestId } = error instanceof Refusal ? error.problem : {};
  return (
    <div class="notice bad" role="alert">
      <p>
        {error.message}{" "}
        {retry && (
          <button type="button" class="small" onClick={retry}>
            Try again
          </button>
        )}
      </p>
      {details.length > 1 && (
        <ul>
          {details.map((d) => (
            <li key={d.field}>
              <code>{d.field}</code> {d.message}
            </li>
          ))}
        </ul>
      )}
      {requestId && <p class="hint">Request {requestId}</p>}
    </div>
  );
}

export const Notice = ({ children }: { children: ComponentChildren }) => <p class="notice">{children}</p>;

const tones: Record<string, string> = {
  DELIVERED: "good", PASSES: "good", YES: "good", ACTIVE: "good", COMPLETED: "good", PAID: "good", FULFILLED: "good", SHIPPED: "good", CONFIRMED: "good",
  PENDING: "busy", RUNNING: "busy", PROCESSING: "busy", AUTHORIZED: "busy", PARTIALLY_PAID: "busy", PARTIALLY_FULFILLED: "busy",
  FAILED: "bad", FAILING: "bad", CIRCUIT_OPEN: "bad", DISABLED: "bad", REFUSED: "bad", REVOKED: "bad", SUSPENDED: "bad", EXPIRED: "bad",
  HELD: "warn", PAUSED: "warn", PARTLY_REFUSED: "warn",
};

// Status is a state; its colour only repeats what its word says.
export const Status = ({ of }: { of: string }) => <span class={`status ${tones[of] ?? ""}`}>{title(of)}</span>;

export function Time({ at, never = "–" }: { at: string | null | undefined; never?: string }) {
  if (!at) return <>{never}</>;
  return (
    <time dateTime={at} title={fullTime(at)}>
      {ago(at)}
    </time>
  );
}

export interface Column<T> {
  label: string;
  cell: (row: T) => ComponentChildren;
  number?: boolean;
}

// Table shows rows, each as a card where the screen is narrow. The roles keep it
// a table to screen readers whatever its layout.
export function Table<T>(props: { label: string; columns: Column<T>[]; rows: T[]; id: (row: T) => string; empty: string }) {
  if (props.rows.length === 0) return <p class="empty">{props.empty}</p>;
  return (
    <table role="table" aria-label={props.label}>
      <thead role="rowgroup">
        <tr role="row">
          {props.columns.map((c) => (
            <th key={c.label} role="columnheader" scope="col" class={c.number ? "number" : ""}>
              {c.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {props.rows.map((row) => (
          <tr key={props.id(row)} role="row">
            {props.columns.map((c) => (
              <td key={c.label} role="cell" class={c.number ? "number" : ""} data-label={c.label}>
                {c.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Pager({ meta, go }: { meta: Meta; go: (page: number) => void }) {
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={meta.page <= 1} onClick={() => go(meta.page - 1)}>
        Previous
      </button>
      <span>
        Page {count(meta.page)} of {count(Math.max(meta.totalPages, 1))}, {count(meta.total)} in all
      </span>
      <button type="button" disabled={meta.page >= meta.totalPages} onClick={() => go(meta.page + 1)}>
        Next
      </button>
    </nav>
  );
}

// Attributes tie a control to its label, and to what is to be known about it.
interface Attributes {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: true;
}

// Field is a control with its label, what is to be known about it, and what is
// wrong in it.
export function Field(props: { label: string; hint?: string; wrong?: string; children: (attributes: Attributes) => JSX.Element }) {
  const id = useId();
  const notes = [props.wrong && `${id}-wrong`, props.hint && `${id}-hint`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.children({ id, ...(notes && { "aria-describedby": notes }), ...(props.wrong && { "aria-invalid": true }) })}
      {props.wrong && (
        <p class="wrong" id={`${id}-wrong`} role="alert">
          {props.wrong}
        </p>
      )}
      {props.hint && (
        <p class="hint" id={`${id}-hint`}>
          {props.hint}
        </p>
      )}
    </div>
  );
}

// wrongIn is what an error says of a field, and of what is in it.
export function wrongIn(error: Error | undefined, field: string): string {
  const details = error instanceof Refusal ? (error.problem.details ?? []) : [];
  return details
    .filter((d) => d.field === field || d.field.startsWith(`${field}.`) || d.field.startsWith(`${field}[`))
    .map((d) => `${d.field} ${d.message}`)
    .join("; ");
}

interface InputProps {
  label: string;
  hint?: string;
  wrong?: string;
  name: string;
  type?: "text" | "password" | "url" | "number" | "datetime-local" | "search";
  value?: string;
  placeholder?: string;
  required?: boolean;
  autoComplete?: string;
  maxLength?: number;
  min?: number;
  max?: number;
  onChange?: (value: string) => void;
}

// Input begins with the value; what is typed then stays whatever else changes.
// The attributes are cast: each type of input has a declaration of its own.
export const Input = ({ label, hint, wrong, value, onChange, ...rest }: InputProps) => (
  <Field label={label} hint={hint} wrong={wrong}>
    {(attributes) => <input {...attributes} {...(rest as { type: "text" })} defaultValue={value} onChange={(e) => onChange?.(e.currentTarget.value)} />}
  </Field>
);

// TextArea is an Input of several lines.
export const TextArea = ({ label, hint, wrong, value, ...rest }: { label: string; hint?: string; wrong?: string; name: string; value?: string; rows: number; placeholder?: string; required?: boolean }) => (
  <Field label={label} hint={hint} wrong={wrong}>
    {(attributes) => <textarea {...attributes} {...rest} spellcheck={false} autoComplete="off" defaultValue={value} />}
  </Field>
);

export function Select(props: { label: string; value: string; options: [value: string, text: string][]; onChange: (value: string) => void }) {
  return (
    <Field label={props.label}>
      {(attributes) => (
        <select {...attributes} value={props.value} onChange={(e) => props.onChange(e.currentTarget.value)}>
          {props.options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

// Dialog is open as long as it is there. The browser keeps the focus in it, and
// gives it back afterwards.
export function Dialog(props: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => (opener?.isConnected ? opener : document.querySelector("h1"))?.focus();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={props.close}>
      <h2 id={id}>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

const fieldNames: Record<string, string> = {
  name: "Name", description: "Description", website: "Website", redirectUri: "Redirect URI", status: "State", clientSecret: "Client secret",
  type: "Client type", url: "URL", events: "Events", secret: "Signing secret", scopes: "Scopes",
  filter: "Filter", changed: "Only if changed", fields: "Only these fields", payload: "Payload", headers: "Headers", retryCount: "Retries", timeoutSeconds: "Timeout in seconds",
};

// Elsewhere tells which fields of the form somebody else has changed, and has the
// user choose for those that both have.
export function Elsewhere({ of }: { of: Difference[] }) {
  const choose = (input: HTMLInputElement, name: string) => {
    (input.form!.elements.namedItem(name) as HTMLInputElement).value = input.value;
  };
  const shown = (value: string | string[]) => (value.length > 0 ? <code class="answer">{[value].flat().join(", ")}</code> : "empty");
  if (of.length === 0) return null;
  return (
    <div class="notice elsewhere" role="alert">
      <p>This was changed elsewhere meanwhile, so nothing is done yet. What you see now has those changes and yours: check it, and confirm again.</p>
      {of.map(({ name, theirs, yours }) =>
        yours === undefined ? (
          <p key={name}>
            <strong>{fieldNames[name]}</strong>: now {shown(theirs)}
          </p>
        ) : (
          <fieldset key={name}>
            <legend>{fieldNames[name]}, which both of you changed</legend>
            {[["Theirs", String(theirs)] as const, ["Yours", yours] as const].map(([whose, value]) => (
              <label class="check" key={whose}>
                <input type="radio" name={`choice of ${name}`} required value={value} onChange={(e) => choose(e.currentTarget, name)} /> {whose}: {shown(value)}
              </label>
            ))}
          </fieldset>
        ),
      )}
    </div>
  );
}

const creation: Editable<undefined> = { state: { body: undefined, tag: "*" }, load: async () => creation.state, values: () => ({}) };

// FormDialog asks for what act takes, and stays open until that has succeeded.
// What is sent again because no answer came is the same request. What edits
// something says what, and draws its fields from the values.
export function FormDialog<T = undefined>(props: {
  title: string;
  submit: string;
  danger?: boolean;
  edits?: Editable<T>;
  act: (fields: FormData, header: Once, match: Match) => Promise<void>;
  close: () => void;
  children: ComponentChildren | ((values: Values) => ComponentChildren);
}) {
  const { busy, error, run } = useAction();
  const edit = useEdit<T | undefined>((props.edits ?? creation) as Editable<T | undefined>);
  const header = useMemo(once, [edit.turn]);
  const submit = (form: HTMLFormElement) =>
    run(async () => {
      if (await edit.send(form, (fields, match) => props.act(fields, header, match))) props.close();
    });
  return (
    <Dialog title={props.title} close={props.close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <Fragment key={edit.turn}>
          {typeof props.children === "function" ? props.children(edit.values) : props.children}
          <Elsewhere of={edit.differences} />
        </Fragment>
        <Failed error={error} />
        <div class="actions end">
          <button type="button" onClick={props.close}>
            Cancel
          </button>
          <button type="submit" class={props.danger ? "danger" : "primary"} disabled={busy}>
            {props.submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

// valueOf is what was typed into a field.
export const valueOf = (fields: FormData, name: string) => String(fields.get(name) ?? "").trim();

export function Copy({ text, what, label = "Copy" }: { text: string; what: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <button type="button" class="small" onClick={copy} aria-label={label === "Copy" ? `Copy ${what}` : label}>
      <span aria-live="polite">{done ? "Copied" : label}</span>
    </button>
  );
}

// Shown are secrets, which the service shows only once.
export function Shown(props: { title: string; secrets: [name: string, value: string][]; close: () => void }) {
  return (
    <Dialog title={props.title} close={props.close}>
      <Notice>Keep it now: it is not shown again.</Notice>
      {props.secrets.map(([name, value]) => (
        <div class="secret" key={name}>
          <span>{name}</span>
          <code>{value}</code>
          <Copy text={value} what={name} />
        </div>
      ))}
      <div class="actions end">
        <button type="button" class="primary" onClick={props.close}>
          I have kept it
        </button>
      </div>
    </Dialog>
  );
}

// Id is an identifier that can be copied.
export const Id = ({ value, what }: { value: string; what: string }) => (
  <span class="id">
    <code>{value}</code> <Copy text={value} what={what} />
  </span>
);

// EndpointName leads to an endpoint, or to what was sent to one that is deleted.
export const EndpointName = ({ id, name, deleted }: { id: string; name?: string; deleted?: boolean }) => (
  <>
    <a class="url" href={deleted ? link("deliveries", { endpointId: id }) : link(`endpoints/${id}`)} title={id}>
      {name ?? short(id)}
    </a>
    {deleted && ", deleted"}
  </>
);

export const Loading = () => <p class="empty" role="status">Loading …</p>;

export const Json = ({ of, label }: { of: unknown; label: string }) => (
  <pre tabIndex={0} role="region" aria-label={`${label} as JSON`}>
    {JSON.stringify(of, null, 2)}
  </pre>
);
