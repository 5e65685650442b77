// Signing in: at the identity provider, or with a credential, which stays in this tab.
import { useEffect, useRef } from "preact/hooks";
import { base } from "../api";
import { useAction } from "../load";
import { begin, provider } from "../signin";
import { ThemeSwitch } from "../theme";
import { arrival, Failed, Input, Notice } from "../ui";

export function SignIn({ said, signIn }: { said: string; signIn: (credential: string) => Promise<void> }) {
  const { busy, error, run } = useAction();
  const page = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = "Sign in · Commerce Integration Service";
    page.current?.querySelector<HTMLElement>("input, button")?.focus();
    arrival.focuses = true;
  }, []);
  return (
    <main class="sign-in" ref={page}>
      <img src={`${base}/portal/icon.svg`} alt="" width={40} height={40} />
      <h1>Commerce Integration Service</h1>
      {said && !error && <Notice>{said}</Notice>}
      {provider && (
        <>
          {/* Who could not go on is asked again, and may be someone else. */}
          <button type="button" class="primary wide" disabled={busy} onClick={() => void run(() => begin(said ? "login" : undefined))}>
            Sign in with your account
          </button>
          <p class="hint">You sign in at {new URL(provider.issuer).host}, and come back to this page. Or use a token or key:</p>
        </>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => signIn(String(new FormData(event.currentTarget).get("credential")).trim()));
        }}
      >
        <Input
          label="User token, application token or API key"
          name="credential"
          type="password"
          autoComplete="off"
          required
          hint="It stays in this tab of your browser, and goes to this service only."
        />
        <Failed error={error} />
        <button type="submit" class={provider ? "wide" : "primary wide"} disabled={busy}>
          Sign in
        </button>
      </form>
      <p class="hint">
        On your own machine <code>make run</code> prints a link that signs you in. <a href={`${base}/docs`}>Documentation</a>
      </p>
      <ThemeSwitch />
    </main>
  );
}
