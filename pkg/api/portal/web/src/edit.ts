// Edits of what others may edit at the same time. A change names the state that
// the form began with; when there is another by then, the two are merged.
import { useState } from "preact/hooks";
import { Refusal, type Match, type Tagged } from "./api";
import { title } from "./format";

// Values are a state as a form has it, by the names of the fields. The order of a list means nothing.
export type Values = Record<string, string | string[]>;

export const textOf = (values: Values, name: string) => String(values[name] ?? "");
export const listOf = (values: Values, name: string) => [values[name] ?? []].flat();

// Editable is a state that was read, and how to read it again.
export interface Editable<T> {
  state: Tagged<T>;
  load: () => Promise<Tagged<T>>;
  values: (body: T) => Values;
}

// Difference is a field that somebody else has changed: yours is there when the user has, too.
export interface Difference {
  name: string;
  theirs: string | string[];
  yours?: string;
}

const same = (a: unknown, b: unknown) => sorted(a) === sorted(b);
const sorted = (of: unknown) => JSON.stringify(Array.isArray(of) ? [...of].sort() : of);

const differ = (a: Values, b: Values) => Object.keys(b).some((name) => !same(a[name], b[name]));

// change calls act with the tag of the state. It returns the present state instead when
// somebody else has changed one of the values. A change of anything else does not matter:
// act is called again, with the present tag.
export async function change<T>({ state, load, values }: Editable<T>, act: (match: Match) => Promise<unknown>): Promise<Tagged<T> | undefined> {
  const before = values(state.body);
  let tag = state.tag;
  for (let again = true; ; again = false) {
    try {
      // No tag names what did not exist.
      if (!tag && (await load()).tag) throw new Refusal(412, {});
      await act(tag ? { "If-Match": tag } : {});
      return undefined;
    } catch (why) {
      if (!(why instanceof Refusal && why.status === 412)) throw why;
      const present = await load();
      if (differ(before, values(present.body))) return present;
      if (!again) throw why;
      tag = present.tag;
    }
  }
}

// decide calls act, which sets the status, unless somebody else has set it meanwhile.
export async function decide<T extends { status: string }>(of: Omit<Editable<T>, "values">, act: (match: Match) => Promise<unknown>) {
  const present = await change({ ...of, values: ({ status }) => ({ status }) }, act);
  if (present) throw new Error(`It was changed elsewhere meanwhile, so nothing is done: its state is now ${title(present.body.status)}.`);
}

// merge takes for each field what was changed of it since before. Of a list it takes the
// changes of both; of a text that both have changed, yours, until the user has chosen.
function merge(before: Values, theirs: Values, yours: Values): { values: Values; differences: Difference[] } {
  const merged: Values = {};
  const differences: Difference[] = [];
  for (const [name, now] of Object.entries(theirs)) {
    const own = yours[name] ?? before[name] ?? now;
    const changed = !same(own, before[name]);
    const was = listOf(before, name);
    merged[name] = Array.isArray(now)
      ? [...new Set([...own, ...now])].filter((v) => !was.includes(v) || (own.includes(v) && now.includes(v)))
      : changed ? own : now;
    if (same(now, before[name])) continue;
    differences.push({ name, theirs: now, ...(changed && typeof own === "string" && own !== now && { yours: own }) });
  }
  return { values: merged, differences };
}

// typed are the values of the form's controls.
function typed(form: HTMLFormElement, before: Values): Values {
  const fields = new FormData(form);
  const has = Object.entries(before).filter(([name]) => form.elements.namedItem(name));
  return Object.fromEntries(has.map(([name, value]) => [name, Array.isArray(value) ? fields.getAll(name).map(String) : String(fields.get(name) ?? "").trim()]));
}

// useEdit is what a form shows, which send merges with what others have changed. A form is
// drawn anew with each turn.
export function useEdit<T>(of: Editable<T>) {
  const begin = (state: Tagged<T>) => ({ state, values: of.values(state.body), differences: [] as Difference[] });
  const [edit, setEdit] = useState(() => ({ ...begin(of.state), turn: 0 }));
  const next = (now: ReturnType<typeof begin>) => setEdit((before) => ({ ...now, turn: before.turn + 1 }));
  // send tells whether act has succeeded.
  const send = async (form: HTMLFormElement, act: (fields: FormData, match: Match) => Promise<unknown>) => {
    const state = await change({ ...of, state: edit.state }, (match) => act(new FormData(form), match));
    if (!state) return true;
    const before = of.values(edit.state.body);
    next({ state, ...merge(before, of.values(state.body), typed(form, before)) });
    return false;
  };
  return { ...edit, send, restart: (state: Tagged<T>) => next(begin(state)) };
}
