// Choosing from the catalogue what an endpoint gets.
import { useState } from "preact/hooks";
import type { EventType } from "../api";
import { groupsOf } from "../webhooks";

const field = "events";

// subscribed are the types that the form of Subscriptions names.
export const subscribed = (fields: FormData) => fields.getAll(field).map(String);

// asked says that * leaves the type out.
const asked = (type: string) => type === "webhook.*" || type === "webhook.test" || type.startsWith("stock.");

// Subscriptions is everything, all of some resources, or single types.
export function Subscriptions({ types, selected }: { types: EventType[]; selected: string[] }) {
  const [chosen, setChosen] = useState(new Set(selected));
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  const everything = chosen.has("*");
  const box = (name: string, text: string, covered: boolean, title?: string) => (
    <label class="check" key={name} title={title}>
      <input type="checkbox" name={field} value={name} checked={covered || chosen.has(name)} disabled={covered} onChange={() => toggle(name)} /> {text}
    </label>
  );
  return (
    <fieldset class="subscriptions">
      <legend>Events</legend>
      {box("*", "Every event, but for stock and webhook.test", false)}
      {groupsOf(types).map((group) => (
        <details key={group} open={[...chosen].some((name) => name !== "*" && name.startsWith(group.slice(0, -1)))}>
          <summary>{group.slice(0, -2)}</summary>
          <div class="choices">
            {box(group, `all of ${group}`, everything && !asked(group))}
            {types
              .filter((t) => t.type.startsWith(group.slice(0, -1)))
              .map((t) => box(t.type, t.type, (everything && !asked(t.type)) || chosen.has(group), t.description))}
          </div>
        </details>
      ))}
    </fieldset>
  );
}
