// Who uses the portal: with a credential that was pasted, or signed in at their own
// identity provider by OpenID Connect, with an authorization code and PKCE. Either
// lives as long as the browser's tab, and the service gets it in a header only.
import * as oauth from "oauth4webapi";

interface Provider {
  issuer: string;
  clientId: string;
  scope: string;
  audience: string;
}

// A request is a sign-in that is under way at the provider.
interface Request {
  state: string;
  nonce: string;
  verifier: string;
  page: string; // to come back to
  silent: boolean;
}

interface Session {
  token: string;
  mark: string; // of the last sign-out before it began
  renew: number; // when the token should be replaced
  refresh?: string;
  id?: string; // the ID token, which the provider wants back at the end
}

// provider is where people sign in, null where the operator has named none.
export const provider: Provider | null = JSON.parse(document.documentElement.dataset.signIn || "null");

const redirect = `${location.origin}${document.documentElement.dataset.base ?? ""}/portal`;
const client: oauth.Client = { client_id: provider?.clientId ?? "", token_endpoint_auth_method: "none" };
// make run has a provider without TLS, on this machine.
const options = { [oauth.allowInsecureRequests]: /^http:\/\/(127\.0\.0\.1|localhost)[:/]/.test(provider?.issuer ?? "") };

// sessionStorage is the tab's own. All tabs share localStorage, whose mark changes when
// somebody signs out.
const pasted = "credential", underWay = "sign-in", signedIn = "session", mark = "signed-out";
const marked = () => localStorage.getItem(mark) ?? "";

function kept<T>(name: string): T | undefined {
  return JSON.parse(sessionStorage.getItem(name) ?? "null") ?? undefined;
}

const keep = (name: string, what: unknown) => sessionStorage.setItem(name, JSON.stringify(what));

// session is the tab's, unless somebody has signed out meanwhile, perhaps while the tab was asleep.
function session(): Session | undefined {
  const found = kept<Session>(signedIn);
  if (!found || found.mark === marked()) return found;
  forget();
  return undefined;
}

export const hasCredential = () => sessionStorage.getItem(pasted) !== null || session() !== undefined;

// paste takes a credential in the place of whatever there is.
export function paste(credential: string) {
  forget();
  sessionStorage.setItem(pasted, credential);
}

export function forget() {
  sessionStorage.removeItem(pasted);
  sessionStorage.removeItem(signedIn);
}

let renewing: Promise<void> | undefined;

// credential is what a request is sent with. Without a refresh token only the provider's page
// can renew a session.
export async function credential(leave: boolean): Promise<string> {
  const now = session();
  if (now && now.renew < Date.now()) await (renewing ??= renewed(now, leave).finally(() => (renewing = undefined)));
  return sessionStorage.getItem(pasted) ?? session()?.token ?? "";
}

// renewed replaces the token. Where the provider cannot be reached the token stays as it is:
// the service says when that has ended.
async function renewed(old: Session, leave: boolean) {
  try {
    if (old.refresh) {
      const as = await server();
      const answer = await oauth.refreshTokenGrantRequest(as, client, oauth.None(), old.refresh, options);
      return keepTokens(await oauth.processRefreshTokenResponse(as, client, answer), old);
    }
  } catch (error) {
    if (!(error instanceof oauth.ResponseBodyError)) return;
    // The refresh token is used up; the provider may still know the user.
  }
  if (leave) await begin("none").catch(() => {});
}

function keepTokens(tokens: oauth.TokenEndpointResponse, old?: Session) {
  const lifetime = (tokens.expires_in ?? 86_400) * 1000;
  keep(signedIn, {
    token: tokens.access_token,
    mark: old?.mark ?? marked(),
    renew: Date.now() + lifetime - Math.min(60_000, lifetime / 2),
    refresh: tokens.refresh_token ?? old?.refresh,
    id: tokens.id_token ?? old?.id,
  } satisfies Session);
}

let found: Promise<oauth.AuthorizationServer> | undefined;

// server is the provider as its discovery document describes it.
function server(): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(provider!.issuer);
  return (found ??= oauth
    .discoveryRequest(issuer, options)
    .then((answer) => oauth.processDiscoveryResponse(issuer, answer))
    .catch((error) => {
      found = undefined;
      throw new Error(`${issuer.host}, your identity provider, cannot be reached: ${(error as Error).message}`);
    }));
}

// begin leaves for the provider, and returns only when that fails. With the prompt none it
// asks the user nothing, with login it asks even one whom it knows.
export async function begin(prompt?: "none" | "login"): Promise<void> {
  const as = await server();
  const request: Request = {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
    page: location.pathname + location.search + location.hash,
    silent: prompt === "none",
  };
  const to = new URL(as.authorization_endpoint!);
  const { scope, audience } = provider!;
  to.search = String(
    new URLSearchParams({
      ...Object.fromEntries(to.searchParams),
      response_type: "code",
      client_id: client.client_id,
      redirect_uri: redirect,
      scope,
      audience, // some providers' way to name the API, which others ignore
      state: request.state,
      nonce: request.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(request.verifier),
      code_challenge_method: "S256",
      ...(prompt && { prompt }),
    }),
  );
  keep(underWay, request);
  location.replace(to);
  await new Promise(() => {});
}

// finish takes the provider's answer out of the address, goes where the sign-in began,
// and says what went wrong: "" if nothing did.
export async function finish(): Promise<string> {
  const answer = new URLSearchParams(location.search);
  if (!provider || !(answer.has("code") || answer.has("error"))) return "";
  const request = kept<Request>(underWay);
  sessionStorage.removeItem(underWay);
  history.replaceState(null, "", request?.page ?? redirect);
  if (!request) return "This sign-in did not begin in this tab. Sign in again.";
  try {
    const as = await server();
    const right = oauth.validateAuthResponse(as, client, answer, request.state);
    const tokens = await oauth.authorizationCodeGrantRequest(as, client, oauth.None(), right, redirect, request.verifier, options);
    const checked = await oauth.processAuthorizationCodeResponse(as, client, tokens, { expectedNonce: request.nonce, requireIdToken: true });
    forget();
    keepTokens(checked);
    return "";
  } catch (error) {
    forget();
    return failure(error as Error, request.silent);
  }
}

function failure(error: Error, silent: boolean): string {
  // Browsers do not say why a script got no answer; often it is this.
  if (error instanceof TypeError) return "The sign-in failed: your identity provider does not answer this page. It has to permit its origin (CORS).";
  if (!(error instanceof oauth.AuthorizationResponseError)) return `The sign-in failed: ${error.message}.`;
  if (silent) return "Your session has ended. Sign in again.";
  if (error.error === "access_denied") return "The sign-in was cancelled, or you may not use this.";
  return `The sign-in failed: ${error.error_description ?? error.error}.`;
}

// signOut ends the session in all tabs, and leaves for the provider to end it there; where it
// cannot, it says so. A pasted credential is its tab's alone.
export async function signOut(): Promise<string> {
  const ended = session();
  forget();
  if (!ended) return "";
  localStorage.setItem(mark, crypto.randomUUID());
  const as = await server().catch(() => undefined);
  await revoke(ended);
  if (!as?.end_session_endpoint) return "You are signed out here. Your identity provider may still know you.";
  const to = new URL(as.end_session_endpoint);
  to.searchParams.set("client_id", client.client_id);
  to.searchParams.set("post_logout_redirect_uri", redirect);
  to.searchParams.set("logout_uri", redirect); // Cognito's name for it
  if (ended.id) to.searchParams.set("id_token_hint", ended.id);
  location.assign(to);
  return "";
}

// revoke ends a refresh token where the provider can: some outlive the session.
async function revoke({ refresh }: Session) {
  try {
    const as = await server();
    if (refresh && as.revocation_endpoint) await oauth.revocationRequest(as, client, oauth.None(), refresh, options);
  } catch {
    // The tab has forgotten it.
  }
}

let signedOut: () => void = () => {};

// onSignedOut has the function called when somebody signs out in another tab.
export function onSignedOut(call: typeof signedOut) {
  signedOut = call;
}

addEventListener("storage", (event) => {
  const mine = kept<Session>(signedIn);
  if (event.key !== mark || !mine) return;
  forget();
  void revoke(mine);
  signedOut();
});
