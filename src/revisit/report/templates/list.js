// The list of clips: search, filters and order, which live in the address.
const PER_PAGE = 20;
const AT_ONCE = 6; // clips shown while somebody types; the rest of the page follows when they pause
const search = byId("search"), model = byId("model"), finding = byId("finding"), order = byId("order");
const FIELDS = { q: search, model: model, finding: finding, order: order };
const list = byId("list"), moreButton = byId("more");
const place = new Map(data.metrics.map((metric, k) => [metric.id, k]));
const headline = data.headline.map((id) => place.get(id)).filter((k) => k !== undefined);
let shown = [], built = 0, later = 0;

// Where words begin: after anything that is no letter or digit, at capitals and digits within a name (ZenGarden_001),
// and at every character of scripts that write no spaces.
const BEGINS = /(?<![\p{L}\p{N}])[\p{L}\p{N}]|(?<=\p{Ll})\p{Lu}|\p{Lu}(?=\p{Ll})|(?<=\p{L})\p{N}|(?<=\p{N})\p{L}|[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]/gu;
const lower = (text) => [...text].map((one) => (one.toLowerCase().length === one.length ? one.toLowerCase() : one)).join("");
for (const clip of data.clips) {
  const said = [clip.id, clip.sample, clip.model, clip.prompt, clip.subset, clip.condition, clip.target, clip.words];
  const text = said.filter(Boolean).join(" ");
  clip.text = lower(text);
  clip.begins = new Uint8Array(text.length);
  for (const match of text.matchAll(BEGINS)) clip.begins[match.index] = 1;
}

// Whether a word of the clip begins so: "zen" is in ZenGarden_001 and not in frozen.
function has(clip, word) {
  const anywhere = !/^[\p{L}\p{N}]/u.test(word);
  for (let at = clip.text.indexOf(word); at >= 0; at = clip.text.indexOf(word, at + 1)) if (anywhere || clip.begins[at]) return true;
  return false;
}

// A bar of phases over the frames of a clip.
function lane(phases, frames) {
  const bar = make("div", { class: "lane" });
  for (const [kind, first, last, words] of phases) {
    const part = make("span", { class: "phase " + kind, title: (words || kind) + ": frames " + first + " to " + last }, words || "");
    part.style.left = percent(first / frames);
    part.style.width = percent((last + 1 - first) / frames);
    bar.append(part);
  }
  return bar;
}

function values(clip) {
  const row = make("span", { class: "values" });
  for (const k of headline) {
    const metric = data.metrics[k];
    if (clip.scores[k] === null) continue;
    row.append(make("span", {}, metric.title + " ", make("b", {}, number(clip.scores[k]))));
  }
  return row;
}

function card(clip) {
  const to = (frame) => "#scene=" + clip.scene + "&clip=" + clip.anchor + (frame === undefined ? "" : "&frame=" + frame);
  const about = [clip.subset, clip.condition, clip.seed ? "seed " + clip.seed : ""].filter(Boolean).join(" · ");
  const name = make("h3", {}, make("a", { href: to() }, bdi(clip.sample)), make("span", { class: "model" }, bdi(clip.model)), make("span", { class: "quiet" }, bdi(about)));
  const article = make("article", { class: "clip", id: "clip-" + clip.anchor }, make("div", { class: "head" }, name, values(clip)));
  if (clip.words) article.append(make("p", { class: "words", dir: "auto" }, clip.words));
  if (clip.failure && !(clip.words || "").includes(clip.failure)) article.append(make("p", { class: "failure", dir: "auto" }, clip.failure));
  if (clip.film) {
    const strip = make("div", { class: "strip" });
    for (const frame of clip.film.frames) {
      const size = { width: clip.film.width, height: clip.film.height };
      const image = make("img", { src: shotAt(clip.film, frame), ...size, loading: "lazy", decoding: "async", alt: "frame " + frame });
      strip.append(make("a", { class: "shot", href: to(frame), tabindex: "-1" }, image));
    }
    article.append(strip);
  }
  if (clip.phases.length) article.append(lane(clip.phases, clip.last + 1));
  return article;
}

function option(select, value, text) {
  select.append(make("option", { value: value }, text));
}

function fillFilters() {
  for (const name of [...new Set(data.clips.map((clip) => clip.model))].sort()) option(model, name, name);
  data.gates.forEach((gate, k) => {
    const labels = [...new Set(data.clips.map((clip) => clip.found[k]).filter(Boolean))].sort();
    if (!labels.length) return;
    const group = make("optgroup", { label: gate.title });
    labels.forEach((label) => option(group, k + ":" + label, label));
    finding.append(group);
  });
  if (data.clips.some((clip) => clip.failure)) option(finding, "failed", "failed");
  const sortable = data.metrics.map((metric, k) => k).filter((k) => data.metrics[k].arrow && data.clips.some((clip) => clip.scores[k] !== null));
  for (const k of [...headline.filter((k) => sortable.includes(k)), ...sortable.filter((k) => !headline.includes(k))]) {
    option(order, data.metrics[k].id, "worst first: " + data.metrics[k].title);
  }
  model.closest("label").hidden = model.options.length < 3;
}

function matcher() {
  const words = lower(search.value.trim()).split(/\s+/).filter(Boolean);
  const cut = finding.value.indexOf(":"), gate = Number(finding.value.slice(0, cut)), label = finding.value.slice(cut + 1);
  return (clip) => {
    if (model.value && clip.model !== model.value) return false;
    if (finding.value === "failed" ? !clip.failure : cut > 0 && clip.found[gate] !== label) return false;
    return words.every((word) => has(clip, word));
  };
}

function refresh() {
  shown = data.clips.filter(matcher());
  if (order.value !== "") {
    const k = place.get(order.value), sign = data.metrics[k].arrow === "↑" ? 1 : -1;
    const rank = (clip) => (clip.scores[k] !== null ? sign * clip.scores[k] : Infinity);
    shown.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) < rank(b) ? -1 : 1));
  }
  list.replaceChildren();
  built = 0;
  const all = data.clips.length;
  byId("count").textContent = (shown.length === all ? "" : shown.length + " of ") + all + (all === 1 ? " clip" : " clips");
  if (!shown.length) list.append(make("p", { class: "quiet" }, "No clip matches."));
  grow(AT_ONCE);
  clearTimeout(later);
  later = setTimeout(() => grow(PER_PAGE - AT_ONCE), 80);
}

function grow(count) {
  const end = Math.min(shown.length, built + count);
  for (; built < end; built++) list.append(card(shown[built]));
  moreButton.hidden = built >= shown.length;
  moreButton.textContent = "Show more clips (" + (shown.length - built) + " left)";
}

// What the address asks for goes into the fields; what the fields say goes into the address.
function readFilters() {
  const given = asked();
  let changed = false;
  for (const [name, field] of Object.entries(FIELDS)) {
    const value = given[name] || "";
    if (field.value !== value && !(name === "q" && document.activeElement === field)) { field.value = value; changed = true; }
    if (field.value !== value && field.tagName === "SELECT") field.value = "";
  }
  if (changed) refresh();
}

function filtered() {
  refresh();
  go(Object.fromEntries(Object.entries(FIELDS).map(([name, field]) => [name, field.value])), true);
}

document.addEventListener("click", (event) => {
  const picker = event.target.closest("button[data-model]");
  if (!picker) return;
  model.value = picker.dataset.model;
  filtered();
  reveal("clips");
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || byId("page").hidden) return;
  if (event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  search.focus();
});
fillFilters();
search.addEventListener("input", filtered);
for (const select of [model, finding, order]) select.addEventListener("change", filtered);
document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
moreButton.addEventListener("click", () => grow(PER_PAGE));
refresh();
readFilters();
