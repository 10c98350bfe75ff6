// A memory to look at: asks for the part that the address names, and shows it.

import { ask, askNow, search } from "./asking.js";
import { allowed } from "./call.js";
import { conversation, conversations } from "./conversations.js";
import { network } from "./network.js";
import { documents, oneDocument } from "./documents.js";
import { link, make, path } from "./dom.js";
import { plot } from "./graph.js";
import { costs, entities, entity, merges, overview } from "./parts.js";
import { someTrails, trails } from "./trails.js";
import { oneTree, trees } from "./trees.js";

const main = document.getElementById("main");

const PARTS = { search: [search, search], ask: [ask, ask], documents: [documents, oneDocument], conversations: [conversations, conversation], entities: [entities, entity], graph: [network, network], trees: [trees, oneTree],
  trails: [trails, someTrails], merges: [merges, merges], costs: [costs, costs] };
const TITLES = { documents: "Documents", conversations: "Conversations", entities: "Entities", graph: "Graph", trees: "Trees", trails: "Trails", merges: "Merged names", costs: "Costs" };
let latest = 0;

// The token stands behind the #, which no browser sends to a server.
const given = new URLSearchParams(location.hash.replace(/^#\/?\??/, "")).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", "#/");
}

function refuse(name, error, wanted = "") {
  main.replaceChildren(
    TITLES[name] ? make("p", { class: "crumbs" }, link(TITLES[name], name)) : "",
    make("p", { class: "error", role: "alert" }, error.message.split("; near:")[0]), // they are links below
    error.near?.length ? make("p", {}, "Near: ", error.near.flatMap((one, at) => [at ? ", " : "", link(one, "entities", one)])) : "",
    name === "entities" && wanted ? make("p", {}, link(`Search the texts for “${wanted}”`, "search", wanted)) : "");
}

// An address that a person typed may hold a bare percent sign.
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

async function route() {
  if (!location.hash.startsWith("#/") && location.hash) return; // the link that skips the frame
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);
  const [all, one] = Object.hasOwn(PARTS, name) ? PARTS[name] : [overview, overview];
  for (const anchor of document.querySelectorAll("nav a")) {
    if (anchor.getAttribute("href") === `#/${name}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  if (name !== "search") find.elements.words.value = "";
  const mine = ++latest;
  main.setAttribute("aria-busy", "true");
  try {
    const shown = await (rest.length ? one(...rest) : all());
    if (mine !== latest) return;
    main.replaceChildren(...shown.filter(Boolean));
    document.title = `${main.querySelector("h2")?.textContent ?? "A memory"} · qrmem`;
    plot(main);
    main.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    main.querySelector(".target")?.scrollIntoView({ block: "center" });
  } catch (error) {
    if (mine === latest) refuse(name, error, rest[0]);
  } finally {
    if (mine === latest) main.removeAttribute("aria-busy");
  }
}

const find = document.getElementById("find");
find.addEventListener("submit", (event) => {
  event.preventDefault();
  const words = event.target.elements.words.value.trim();
  if (words && event.submitter?.name === "ask") askNow(words);
  else if (words) location.hash = path("search", words);
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("hashchange", route);
window.addEventListener("show-again", route);
allowed().then((may) => { find.elements.ask.hidden = !may.ask; }, () => {}); // which the page itself tells
route();
