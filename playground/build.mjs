// Builds the scripts of the playground: `npm ci && npm run build`. The first line of each has the digest of the sources,
// which a test compares; the licences of the packages inside follow at the end.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "archlang", "reports", "assets");
const sources = ["build.mjs", "package-lock.json", "package.json", ...readdirSync(join(here, "src")).sort().map((name) => `src/${name}`)];
const digest = createHash("sha256");
for (const name of sources) digest.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
const banner = `// Written by playground/build.mjs, from sources ${digest.digest("hex")}\n`;

const licences = (inputs) => {
  const packages = new Set(inputs.map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean));
  const texts = [...packages].sort().map((name) => {
    const licence = readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").trim();
    return `${name}\n\n${licence}`;
  });
  return texts.length ? `/*\n${texts.join("\n\n").replaceAll("*/", "* /")}\n*/\n` : "";
};

for (const [entry, name, format] of [["main.js", "playground.js", "iife"], ["worker.js", "playground_worker.js", "esm"]]) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [`src/${entry}`],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format,
    target: "es2022",
    charset: "utf8",
    external: ["./pyodide/*"],
  });
  const text = banner + result.outputFiles[0].text + licences(Object.keys(result.metafile.inputs));
  writeFileSync(join(assets, name), text);
}
