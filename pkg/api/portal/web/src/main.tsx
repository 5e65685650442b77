// The portal: signing in, the frame around the pages, and which page is shown.
import { render, type ComponentType } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { api, ask, base, observe, type Me, type Rate } from "./api";
import { Meter } from "./chart";
import { count } from "./format";
import { ApplicationPage } from "./pages/application";
import { Applications } from "./pages/applications";
import { Audit } from "./pages/audit";
import { Authorize } from "./pages/authorize";
import { Changes } from "./pages/changes";
import { Deliveries } from "./pages/deliveries";
import { DeliveryPage } from "./pages/delivery";
import { DeliverySettingsPage } from "./pages/deliverysettings";
import { EndpointPage } from "./pages/endpoint";
import { Endpoints } from "./pages/endpoints";
import { Overview } from "./pages/overview";
import { ReceiptPage, Receipts } from "./pages/receipts";
import { Records } from "./pages/records";
import { SignaturePage } from "./pages/signature";
import { SignIn } from "./pages/signin";
import { TracePage } from "./pages/trace";
import { You } from "./pages/you";
import { link, tokenOfLink, useRoute, type Route } from "./route";
import { can, kindOf, Session, why } from "./session";
import { finish, forget, hasCredential, onSignedOut, paste, signOut } from "./signin";
import { ThemeSwitch } from "./theme";
import { Notice, Page } from "./ui";

interface Area {
  name: string;
  path: string;
  scope?: string; // that its pages take
  pages: ComponentType<Route>[]; // by the number of segments after its path
}

const you: Area = { name: "You", path: "you", pages: [You] };
const signature: Area = { name: "Signature checker", path: "signature", pages: [SignaturePage] };
const areas: Area[] = [
  { name: "Overview", path: "", pages: [Overview] },
  { name: "Deliveries", path: "deliveries", scope: "webhooks:read", pages: [Deliveries, DeliveryPage, TracePage] },
  { name: "Endpoints", path: "endpoints", scope: "webhooks:read", pages: [Endpoints, EndpointPage, DeliverySettingsPage] },
  { name: "Applications", path: "applications", scope: "developers:read", pages: [Applications, ApplicationPage] },
  { name: "Records", path: "records", pages: [Records] },
  { name: "Changes", path: "changes", pages: [Changes] },
  { name: "Received records", path: "posted", scope: "records:write", pages: [Receipts, ReceiptPage] },
  { name: "Who changed what", path: "audit", scope: "developers:admin", pages: [Audit] },
  signature,
  you,
];

// asksConsent tells whether the address is the authorization endpoint's, whose query is an application's.
const asksConsent = () => location.pathname.replace(/\/$/, "") === `${base}/portal/authorize`;

function App({ told }: { told: string }) {
  const { path } = useRoute();
  const [me, setMe] = useState<Me>();
  const [said, setSaid] = useState(told);
  const [rate, setRate] = useState<Rate>();
  const [starting, setStarting] = useState(hasCredential());

  const leave = (why: string) => {
    setMe(undefined);
    setSaid(why);
  };
  const end = () => {
    leave("");
    void signOut().then(setSaid);
  };
  const signIn = async (credential: string) => {
    paste(credential);
    setMe(await ask(api.GET("/api/me")));
    setSaid("");
  };

  useEffect(() => {
    observe(setRate, (problem) => {
      forget();
      leave(problem.message ?? "Sign in again.");
    });
    onSignedOut(() => leave("You have signed out in another tab."));
    if (!hasCredential()) return;
    ask(api.GET("/api/me"))
      .then(setMe, (error: Error) => setSaid(error.message))
      .finally(() => setStarting(false));
  }, []);

  if (starting) return null;
  if (!me && path[0] === signature.path) return <main><SignaturePage /></main>;
  if (!me) return <SignIn said={said} signIn={signIn} />;
  return (
    <Session.Provider value={me}>
      {asksConsent() ? (
        <main class="sign-in">
          <Authorize signOut={end} />
        </main>
      ) : (
        <Frame me={me} rate={rate} signOut={end} />
      )}
    </Session.Provider>
  );
}

function Frame({ me, rate, signOut }: { me: Me; rate?: Rate; signOut: () => void }) {
  const route = useRoute();
  const [open, setOpen] = useState(false); // the menu, where the screen is narrow
  const [first = "", ...rest] = route.path;
  const area = areas.find((a) => a.path === first);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the content
      </a>
      <header class={open ? "side open" : "side"}>
        <a class="brand" href={link("")}>
          <img src={`${base}/portal/icon.svg`} alt="" width={24} height={24} /> Commerce Integration
        </a>
        <button type="button" class="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
          Menu
        </button>
        <nav aria-label="Areas" onClick={() => setOpen(false)}>
          {areas.filter((a) => a !== you && a !== signature).map((a) => (
            <a key={a.path} href={link(a.path)} aria-current={a === area ? "page" : undefined}>
              {a.name}
            </a>
          ))}
          <a href={`${base}/docs`}>Documentation</a>
        </nav>
        <div class="side-foot">
          {rate && rate.remaining < rate.limit / 5 && (
            <div class="rate">
              <span>
                {count(rate.remaining)} of {count(rate.limit)} requests left this minute
              </span>
              <Meter value={rate.remaining} max={rate.limit} label="Requests left this minute" />
            </div>
          )}
          <a href={link("you")}>
            Signed in with {kindOf(me) === "user" ? "a user's token" : kindOf(me) === "API key" ? "an API key" : "an application's token"}
            {can(me, "developers:admin") ? ", as an administrator" : ""}
          </a>
          <ThemeSwitch />
          <button type="button" onClick={signOut}>
            Sign out
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <Content key={route.path.join("/")} area={area} me={me} route={{ ...route, path: rest }} />
      </main>
    </div>
  );
}

function Content({ area, me, route }: { area?: Area; me: Me; route: Route }) {
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

// start signs in with the link of the address. It may be pasted into a tab that shows the
// portal already, which then is the link's user's. It listens before any page does, so that
// none takes the token for a page's name.
let starts = 0;
function start(told = "") {
  const token = tokenOfLink();
  if (token) paste(token);
  if (token || starts === 0) render(<App key={++starts} told={told} />, document.getElementById("app")!);
}

const told = await finish();
addEventListener("hashchange", () => start());
start(told);
