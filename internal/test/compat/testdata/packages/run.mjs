// node run.mjs MODULE …: what node answers for the cases of each module, as a JSON array of objects.
import { pathToFileURL } from "node:url";
import { answer } from "./answers.mjs";

const all = [];
for (const file of process.argv.slice(2)) {
  const { cases } = await import(pathToFileURL(file));
  const answers = {};
  for (const name of Object.keys(cases)) answers[name] = await answer(cases, name);
  all.push(answers);
}
process.stdout.write(JSON.stringify(all));
