// Numbers, times and names as people read them.
const number = new Intl.NumberFormat("en");

export const count = (n: number) => number.format(n);
export const percent = (part: number, whole: number) => (whole === 0 ? "–" : `${((100 * part) / whole).toFixed(part === whole ? 0 : 1)}%`);
export const milliseconds = (n: number | null | undefined) => (n == null ? "–" : n < 10_000 ? `${count(n)} ms` : `${(n / 1000).toFixed(1)} s`);
export const amount = (n: number | null | undefined, currency?: string | null) =>
  n == null ? "–" : `${n.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 })}${currency ? ` ${currency}` : ""}`;

// title is a constant such as PARTIALLY_PAID in words.
export const title = (constant: string) => (constant.charAt(0) + constant.slice(1).toLowerCase()).replaceAll("_", " ");

// short is the end of an id, which tells ids apart: they begin with a time.
export const short = (id: string) => `…${id.slice(-8)}`;

const time = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
export const fullTime = (iso: string) => time.format(new Date(iso));

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const far = 30 * 86_400_000;

// ago is how long ago a time is, or how far ahead; its day when that is far.
export function ago(iso: string, now = Date.now()): string {
  const distance = new Date(iso).getTime() - now;
  if (Math.abs(distance) > far) return day.format(new Date(iso));
  const [unit, size] = units.find(([, size]) => Math.abs(distance) >= size) ?? ["second", 1000];
  return relative.format(Math.round(distance / size), unit);
}
