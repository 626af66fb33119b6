// Prints name, version and licence text of every package that a bundle contains, htmx included.
import { readdirSync, readFileSync } from "node:fs";

const folder = /node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const bundled = process.argv.slice(2).flatMap((file) => Object.keys(JSON.parse(readFileSync(file)).inputs));
const names = new Set(["htmx.org", ...bundled.map((path) => path.match(folder)?.[1]).filter(Boolean)]);

for (const name of [...names].sort()) {
  const place = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${place}/package.json`));
  const texts = readdirSync(place).filter((file) => /^licen[cs]e/i.test(file));
  if (!texts.length) throw new Error(`${name} has no licence text`);
  console.log(`${"=".repeat(100)}\n${name} ${version} (${license})\n${"=".repeat(100)}`);
  for (const text of texts) console.log(readFileSync(`${place}/${text}`, "utf8").trim() + "\n");
}
