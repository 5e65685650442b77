// The frame around the pages, and which page is shown.
import type { ComponentChildren, ComponentType } from "preact";
import { useErrorBoundary, useState } from "preact/hooks";
import { link, useRoute, type Route } from "./route";
import { useMe, why } from "./session";
import { Notice, Page } from "./ui";

export interface Area {
  name: string;
  path: string;
  scope?: string; // that its pages take
  pages: ComponentType<Route>[]; // by the number of segments after its path
}

// Frame shows the page that the address names. Some areas are not in its menu; more and foot
// come after those that are.
export function Frame(props: { areas: Area[]; hidden: Area[]; home: string; brand: ComponentChildren; more?: ComponentChildren; foot?: ComponentChildren }) {
  const route = useRoute();
  const [open, setOpen] = useState(false); // the menu, where the screen is narrow
  const [first = "", ...rest] = route.path;
  const area = [...props.areas, ...props.hidden].find((a) => a.path === first);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the content
      </a>
      <header class={open ? "side open" : "side"}>
        <a class="brand" href={link(props.home)}>
          {props.brand}
        </a>
        <button type="button" class="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
          Menu
        </button>
        <nav aria-label="Areas" onClick={() => setOpen(false)}>
          {props.areas.map((a) => (
            <a key={a.path} href={link(a.path)} aria-current={a === area ? "page" : undefined}>
              {a.name}
            </a>
          ))}
          {props.more}
        </nav>
        {props.foot && <div class="side-foot">{props.foot}</div>}
      </header>
      <main id="main" tabIndex={-1}>
        <Content key={route.path.join("/")} area={area} route={{ ...route, path: rest }} />
      </main>
    </div>
  );
}

function Content({ area, route }: { area?: Area; route: Route }) {
  const me = useMe();
  const [broken] = useErrorBoundary();
  const Shown = area?.pages[Math.min(route.path.length, area.pages.length - 1)];
  if (!area || !Shown || broken) {
    return (
      <Page title="No such page">
        <Notice>There is no page at this address.</Notice>
      </Page>
    );
  }
  const reason = area.scope ? why(me, area.scope) : "";
  if (reason) {
    return (
      <Page title={area.name}>
        <Notice>{reason}</Notice>
      </Page>
    );
  }
  return <Shown {...route} />;
}
