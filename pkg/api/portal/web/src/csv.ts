// CSV of what a page shows.

// cell is a value in quotes. Spreadsheets take what begins with one of these
// characters for a formula, unless an apostrophe stands before it.
const cell = (text: string) => `"${(/^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;

// csv is a table by RFC 4180, its first row the names of the columns.
export const csv = (rows: string[][]) => rows.map((row) => row.map(cell).join(",") + "\r\n").join("");

// download saves the parts of a file.
export function download(name: string, type: string, ...parts: BlobPart[]) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob(parts, { type }));
  a.download = name;
  a.click();
  URL.revokeObjectURL(a.href);
}
