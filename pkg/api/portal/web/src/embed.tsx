// The page of a portal session: the webhooks of one application, for who may have it in a
// frame. It takes the code out of its address and keeps the token in memory, so that the
// session ends with the page. It reads and writes nothing that the browser stores, where the
// portal of the same origin keeps its users' tokens.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api, ask, base, identify, observe, type Me } from "./api";
import { Frame, type Area } from "./frame";
import { Deliveries } from "./pages/deliveries";
import { DeliveryPage } from "./pages/delivery";
import { DeliverySettingsPage } from "./pages/deliverysettings";
import { EndpointPage } from "./pages/endpoint";
import { Endpoints } from "./pages/endpoints";
import { SignaturePage } from "./pages/signature";
import { TracePage } from "./pages/trace";
import { link } from "./route";
import { Session } from "./session";
import { Loading, Notice, Page } from "./ui";

interface Brand {
  name: string;
  colour: string;
  logo: string;
}

const areas: Area[] = [
  { name: "Endpoints", path: "endpoints", scope: "webhooks:read", pages: [Endpoints, EndpointPage, DeliverySettingsPage] },
  { name: "Deliveries", path: "deliveries", scope: "webhooks:read", pages: [Deliveries, DeliveryPage, TracePage] },
];
const signature: Area = { name: "Signature checker", path: "signature", pages: [SignaturePage] };

const root = document.documentElement;
const brand: Brand = JSON.parse(root.dataset.brand!);
if (brand.colour) {
  root.dataset.branded = "";
  root.style.setProperty("--brand", brand.colour);
}

const given = new URLSearchParams(location.hash.slice(1));
const [client, code, theme] = ["client_id", "code", "theme"].map((name) => given.get(name) ?? "");
history.replaceState(null, "", location.pathname + link("endpoints"));
if (theme === "light" || theme === "dark") root.dataset.theme = theme;

let token = "";
identify(async () => token);

// opened has the session's token made by the code, which works for a minute: as long the
// service may be asked again when it is busy.
async function opened(tries = 20): Promise<Me> {
  const form = new URLSearchParams({ grant_type: "urn:commerce-integration:grant-type:portal-session", client_id: client!, code: code! });
  const answer = await fetch(`${base}/oauth/token`, { method: "POST", body: form });
  if ((answer.status === 429 || answer.status >= 500) && tries > 0) {
    await new Promise((later) => setTimeout(later, 3000));
    return opened(tries - 1);
  }
  if (!answer.ok) throw new Error();
  const { access_token, expires_in } = (await answer.json()) as { access_token: string; expires_in: number };
  token = access_token;
  setTimeout(end, expires_in * 1000);
  return ask(api.GET("/api/me"));
}

let end = () => {};

function App() {
  const [me, setMe] = useState<Me>();
  const [ended, setEnded] = useState(false);
  useEffect(() => {
    end = () => setEnded(true);
    observe(() => {}, end);
    opened().then(setMe, end);
  }, []);
  if (ended) {
    return (
      <main>
        <Page title="This session has ended">
          <Notice>Ask {brand.name || "whoever showed it to you"} to open it again.</Notice>
        </Page>
      </main>
    );
  }
  if (!me) return <main><Loading /></main>;
  return (
    <Session.Provider value={me}>
      <Frame
        areas={areas}
        hidden={[signature]}
        home="endpoints"
        brand={
          <>
            <img src={brand.logo || `${base}/portal/icon.svg`} alt="" height={24} /> {brand.name || "Webhooks"}
          </>
        }
      />
    </Session.Provider>
  );
}

render(<App />, document.getElementById("app")!);
