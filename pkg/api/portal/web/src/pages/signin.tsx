// Signing in: the credential stays in this tab.
import { useEffect, useRef } from "preact/hooks";
import { base } from "../api";
import { useAction } from "../load";
import { ThemeSwitch } from "../theme";
import { arrival, Failed, Input, Notice } from "../ui";

export function SignIn({ said, signIn }: { said: string; signIn: (credential: string) => Promise<void> }) {
  const { busy, error, run } = useAction();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    document.title = "Sign in · Commerce Integration Service";
    form.current?.querySelector("input")?.focus();
    arrival.focuses = true;
  }, []);
  return (
    <main class="sign-in">
      <img src={`${base}/portal/icon.svg`} alt="" width={40} height={40} />
      <h1>Commerce Integration Service</h1>
      {said && !error && <Notice>{said}</Notice>}
      <form
        ref={form}
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
        <button type="submit" class="primary wide" disabled={busy}>
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
