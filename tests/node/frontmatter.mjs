// Reads a JSON array of frontmatter blocks from stdin; prints what each js-yaml makes of them.
import { readFileSync } from "node:fs";
import yaml3 from "js-yaml-3";
import yaml4 from "js-yaml-4";

const blocks = JSON.parse(readFileSync(0, "utf8"));
const readers = { "js-yaml 3": (text) => yaml3.safeLoad(text), "js-yaml 4": (text) => yaml4.load(text) };

function describe(value) {
  if (Array.isArray(value)) return value.map(describe);
  if (value !== null && typeof value === "object" && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, describe(member)]));
  }
  return { type: value instanceof Date ? "date" : typeof value, value: String(value) };
}

const answers = {};
for (const [name, read] of Object.entries(readers)) {
  answers[name] = blocks.map((block) => describe(read(block)));
}
process.stdout.write(JSON.stringify(answers));
