// Builds the page into ../dist. Each file lies there compressed, as it goes out.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url);

const { outputFiles } = await build({
  entryPoints: ["src/main.tsx", "src/embed.tsx", "src/style.css"],
  outdir: "out",
  splitting: true,
  chunkNames: "shared",
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  write: false,
});
for (const { path, contents } of outputFiles) await write(path.split("/").at(-1), contents);
await write("icon.svg", await readFile("../../docs/web/icon.svg"));
await writeFile(new URL("index.html", dist), await readFile("src/index.html"));

async function write(name, contents) {
  await writeFile(new URL(name + ".gz", dist), gzipSync(contents, { level: 9 }));
}
