// The first pages that the search of built pages finds: node search.js FOLDER QUERY ...
const fs = require("fs"), vm = require("vm");
const [folder, ...queries] = process.argv.slice(2);
const element = {};
const page = vm.createContext({
  document: { getElementById: () => element },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _ready: () => {},
  _: (text) => text,
});
page.window = page;
const files = ["base-stemmer", "english-stemmer", "language_data", "searchtools"]
  .map((name) => `${folder}/_static/${name}.js`)
  .filter(fs.existsSync);
for (const file of files) vm.runInContext(fs.readFileSync(file, "utf8"), page);
vm.runInContext(fs.readFileSync(`${folder}/searchindex.js`, "utf8"), page);
for (const query of queries) {
  page.query = query;
  const found = vm.runInContext(
    "Search._performSearch(...Search._parseQuery(query)).reverse().map((result) => result[0])",
    page,
  );
  console.log(JSON.stringify([query, [...new Set(found)].slice(0, 5)]));
}
