// The signature checker, for receivers that refuse what they get. It asks the service nothing.
import { useState } from "preact/hooks";
import { base } from "../api";
import { useAction } from "../load";
import { check, taken, type Verdict } from "../signature";
import { Failed, Input, Page, TextArea } from "../ui";

export function SignaturePage() {
  const [given] = useState(taken);
  const [verdict, setVerdict] = useState<Verdict>();
  const [searching, setSearching] = useState(false);
  const action = useAction();
  const judge = (form: HTMLFormElement) =>
    action.run(async () => {
      setVerdict(undefined);
      // The elements have the text as it was pasted.
      const text = (name: string) => (form.elements.namedItem(name) as HTMLInputElement).value;
      const pasted = { headers: text("headers"), body: text("body"), secret: text("secret") };
      setVerdict(await check(pasted, () => setSearching(true)).finally(() => setSearching(false)));
    });
  return (
    <Page title="Signature checker" actions={<a href={`${base}/docs/webhooks#verify`} target="_blank">How signatures are made</a>}>
      <p>Paste a request that your receiver got, and the endpoint's secret. Nothing of it leaves this page.</p>
      <form
        class="settings"
        onSubmit={(event) => {
          event.preventDefault();
          void judge(event.currentTarget);
        }}
      >
        <TextArea label="Headers" name="headers" value={given.headers} rows={4} required placeholder={"webhook-id: …\nwebhook-timestamp: …\nwebhook-signature: v1,…"} />
        <TextArea label="Body" name="body" value={given.body} rows={8} hint="As it came, before anything has parsed it." />
        <Input label="Secret" name="secret" autoComplete="off" required placeholder="whsec_…" />
        <Failed error={action.error} />
        <div role="status">
          {searching && <p class="notice">The signature does not fit. Looking for a changed character …</p>}
          {verdict && <p class={`notice ${verdict.late ? "" : "good"}`}>{verdict.text}</p>}
        </div>
        <div class="actions">
          <button type="submit" class="primary" disabled={action.busy}>
            Check
          </button>
        </div>
      </form>
    </Page>
  );
}
