// The portal: signing in, and its areas.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api, ask, base, identify, observe, type Me, type Rate } from "./api";
import { Meter } from "./chart";
import { count } from "./format";
import { Frame, type Area } from "./frame";
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
import { ImportFile } from "./pages/importfile";
import { Overview } from "./pages/overview";
import { ReceiptPage, Receipts } from "./pages/receipts";
import { Records } from "./pages/records";
import { SignaturePage } from "./pages/signature";
import { SignIn } from "./pages/signin";
import { SourcePage, Sources } from "./pages/sources";
import { TracePage } from "./pages/trace";
import { You } from "./pages/you";
import { joinTabs } from "./poll";
import { link, tokenOfLink, useRoute } from "./route";
import { can, kindOf, Session } from "./session";
import { credential, finish, forget, hasCredential, onSignedOut, paste, signOut } from "./signin";
import { ThemeSwitch } from "./theme";

const you: Area = { name: "You", path: "you", pages: [You] };
const importFile: Area = { name: "Import a file", path: "import", scope: "records:write", pages: [ImportFile] };
const signature: Area = { name: "Signature checker", path: "signature", pages: [SignaturePage] };
const areas: Area[] = [
  { name: "Overview", path: "", pages: [Overview] },
  { name: "Deliveries", path: "deliveries", scope: "webhooks:read", pages: [Deliveries, DeliveryPage, TracePage] },
  { name: "Endpoints", path: "endpoints", scope: "webhooks:read", pages: [Endpoints, EndpointPage, DeliverySettingsPage] },
  { name: "Applications", path: "applications", scope: "developers:read", pages: [Applications, ApplicationPage] },
  { name: "Records", path: "records", pages: [Records] },
  { name: "Changes", path: "changes", pages: [Changes] },
  { name: "Received records", path: "posted", scope: "records:write", pages: [Receipts, ReceiptPage] },
  { name: "Sources", path: "sources", scope: "developers:read", pages: [Sources, SourcePage] },
  { name: "Who changed what", path: "audit", scope: "developers:admin", pages: [Audit] },
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
        <Portal me={me} rate={rate} signOut={end} />
      )}
    </Session.Provider>
  );
}

function Portal({ me, rate, signOut }: { me: Me; rate?: Rate; signOut: () => void }) {
  return (
    <Frame
      areas={areas}
      hidden={[importFile, signature, you]}
      home=""
      brand={
        <>
          <img src={`${base}/portal/icon.svg`} alt="" width={24} height={24} /> Commerce Integration
        </>
      }
      more={<a href={`${base}/docs`}>Documentation</a>}
      foot={
        <>
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
        </>
      }
    />
  );
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

identify(credential);
joinTabs();
const told = await finish();
addEventListener("hashchange", () => start());
start(told);
