// Finds out whether a signature of Standard Webhooks is right, and if not, why. It
// runs in the browser alone: nobody else gets what it is given.

export interface Given {
  headers: string;
  body: string;
  secret: string;
}

// handed is what a page hands to the checker, which takes it once.
let handed: Partial<Given> = {};

export const hand = (request: Partial<Given>) => {
  handed = request;
};

export function taken(): Partial<Given> {
  const given = handed;
  handed = {};
  return given;
}

// Verdict is about a signature that is right; late says that its time is not.
export interface Verdict {
  text: string;
  late: boolean;
}

const tolerance = 300; // seconds
const maxSearched = 2048; // characters of a body in which a wrong one is looked for
const printable = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));

type Fits = (body: string, id?: string) => Promise<boolean>;

// check throws an Error with words for people when the signature is wrong. It calls
// searching before it takes seconds.
export async function check({ headers, body, secret }: Given, searching: () => void, now = Date.now()): Promise<Verdict> {
  const key = await crypto.subtle.importKey("raw", keyOf(secret.trim()), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const got = headersOf(headers);
  const id = need(got, "webhook-id");
  const time = need(got, "webhook-timestamp");
  const signatures = need(got, "webhook-signature").split(/\s+/);
  if (!/^\d{1,10}$/.test(time)) {
    throw new Error("webhook-timestamp is the wrong header, or was changed: it has whole seconds since 1970, such as 1795269621.");
  }
  if (!signatures.some((s) => /^v1,[\w+/]{43}=$/.test(s))) {
    throw new Error("webhook-signature is the wrong header, or was cut: it has v1, and 44 characters of base64.");
  }

  const sign = async (body: string, as = id) => {
    const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(`${as}.${time}.${body}`));
    return `v1,${btoa(String.fromCharCode(...new Uint8Array(mac)))}`;
  };
  const fits: Fits = async (body, as) => signatures.includes(await sign(body, as));
  if (await fits(body)) return judge(Number(time) - now / 1000);

  const right = await sign(body);
  const differing = signatures.map((s) => [...s].filter((c, i) => c !== right[i]).length);
  if (differing.some((n) => n < 5)) throw new Error("webhook-signature itself was changed: it differs from the right one in a few characters.");
  for (const [form, what] of formsOf(body)) if (await fits(form)) throw new Error(what);
  const event = eventOf(body);
  if (event && event !== id && (await fits(body, event))) {
    throw new Error(`webhook-id is the wrong header, or was changed: the signature is of the id ${event}.`);
  }
  if (body.length <= maxSearched) {
    searching();
    const changed = await changedCharacter(body, fits);
    if (changed) throw new Error(changed);
  }
  if (event && event !== id) {
    throw new Error(`The headers and the body are of two events: webhook-id is ${id}, the id in the body ${event}.`);
  }
  const advice = isJSON(body) ? "Take that of this endpoint, after a rotation the new one." : "The body is no whole JSON: take it as it came.";
  throw new Error(`The secret is another one than the sender's, unless more than a character of the body or of webhook-timestamp was changed. ${advice}`);
}

// keyOf is the key in a secret.
function keyOf(secret: string) {
  if (secret.includes("*")) throw new Error("The secret is masked. The whole one was shown when it was made; rotate it if nobody has kept it.");
  if (!/^whsec_[\w+/]+=*$/.test(secret)) {
    throw new Error("The secret is no signing secret: that is whsec_ and base64, from the creation of the endpoint or from a rotation.");
  }
  try {
    return Uint8Array.from(atob(secret.slice("whsec_".length).replace(/=+$/, "")), (c) => c.charCodeAt(0));
  } catch {
    throw new Error("The secret is not whole: what follows whsec_ is no base64.");
  }
}

// headersOf reads headers as HTTP, curl, JSON and programs' logs write them.
function headersOf(text: string): Map<string, string> {
  const lines = text.replace(/^\s*\{|\}\s*$/g, "").split(/\n|"\s*,\s*(?=")/);
  const form = /^\s*(?:-H|--header)?\s*["']?([\w-]+)["']?\s*(?:=>|:|=)\s*["'[]*(.*?)["'\],;\\\s]*$/;
  const nameOf = (text: string) => text.toLowerCase().replaceAll("_", "-").replace(/^http-/, "");
  return new Map(lines.map((line) => form.exec(line)).flatMap((pair) => (pair ? [[nameOf(pair[1]!), pair[2]!]] : [])));
}

function need(headers: Map<string, string>, name: string): string {
  const value = headers.get(name);
  if (value) return value;
  const last = name.slice("webhook-".length);
  const other = [...headers.keys()].find((n) => n.includes(last));
  throw new Error(`The header ${name} is missing.${other ? ` ${other} is the wrong header: the service sends none of that name.` : ""}`);
}

// judge tells of a right signature whether receivers take its time, which is so many
// seconds ahead.
function judge(ahead: number): Verdict {
  if (Math.abs(ahead) <= tolerance) return { text: "The signature is right.", late: false };
  const minutes = Math.round(Math.abs(ahead) / 60);
  const text = `The signature is right, but the time in webhook-timestamp is ${minutes} minutes ${ahead < 0 ? "ago" : "ahead"}`;
  return { text: `${text}. Receivers refuse more than 5: somebody sends an old request again, or a clock is wrong.`, late: true };
}

// formsOf are other forms in which the body may have been sent, and what then happened
// to it.
function* formsOf(body: string): Generator<[form: string, what: string]> {
  const lines = "Blanks or line ends around the body were added, lost or changed. Verify the bytes as they came.";
  for (const form of [body.trim(), `${body}\n`, body.replace(/\r?\n/g, "\r\n"), `\uFEFF${body}`]) yield [form, lines];
  if (!isJSON(body)) return;
  const value = JSON.parse(body);
  // Numbers stay as they are written.
  const compact = body.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (part) => (part.startsWith('"') ? JSON.stringify(JSON.parse(part)) : ""));
  const spaced = JSON.stringify(value, null, 1).replace(/,\n\s*/g, ", ").replace(/\n\s*/g, "");
  const plain = [compact, JSON.stringify(value), spaced, ...[2, 4, "\t"].map((indent) => JSON.stringify(value, null, indent))];
  const { id, type, apiVersion, timestamp, organizationId, siteId, data } = value ?? {};
  const { object, previousAttributes } = data ?? {};
  const ordered = JSON.stringify({ id, type, apiVersion, timestamp, organizationId, siteId, data: { object, previousAttributes } });
  const again = "The body was parsed and written again: the signature fits the same JSON in another form. Verify the bytes as they came, before anything parses them.";
  for (const form of [...plain, ordered]) {
    const ascii = form.replace(/[^\0-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    for (const escaped of [form, ascii, form.replaceAll("/", "\\/")]) yield [escaped, again];
  }
}

function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// eventOf is the id in the body, which the service also sends as webhook-id.
const eventOf = (body: string): string | undefined => (isJSON(body) ? (JSON.parse(body) as { id?: string } | null)?.id : undefined);

// changedCharacter says which one character of the body was changed, added or lost; ""
// if it is not one.
async function changedCharacter(body: string, fits: Fits): Promise<string> {
  for (let at = 0; at <= body.length; at++) {
    const now = body.slice(at, at + 1);
    const tries = ["", ...printable].flatMap((was) => [was, was + now]);
    const found = await Promise.all(tries.map((was) => fits(body.slice(0, at) + was + body.slice(at + 1))));
    const was = tries[found.indexOf(true)];
    if (was === undefined) continue;
    return `The body was changed at character ${at + 1}, after “${body.slice(Math.max(0, at - 30), at)}”: “${now}” was “${was}” when it was signed.`;
  }
  return "";
}
