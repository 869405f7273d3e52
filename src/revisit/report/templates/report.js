"use strict";
// The list of clips, the sorting of the table, cards and tooltips. Text goes in by textContent only.
const SVG = document.querySelector("svg").namespaceURI;
const data = JSON.parse(document.getElementById("data").textContent);
const PER_PAGE = 20;
const byId = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function draw(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const bdi = (text) => make("bdi", {}, text);
const percent = (share) => (100 * share).toFixed(2) + "%";
const seconds = (clip, frame) => (clip.clock && clip.clock.fps ? frame / clip.clock.fps : null);

function frameName(clip, frame) {
  const at = seconds(clip, frame);
  return "frame " + frame + (at === null ? "" : " (" + at.toFixed(2) + " s)");
}

// ---- one clip -------------------------------------------------------------------------------

function chips(clip) {
  const row = make("ul", { class: "chips" });
  clip.findings.forEach((found, k) => {
    if (!found) return;
    const gate = data.gates[k];
    const redundant = found.label.toLowerCase().includes(gate.short.toLowerCase());
    const text = [redundant ? found.label : gate.short + ": " + found.label, ...found.seconds].join(" · ");
    const sign = { open: "✓", closed: "–", unsure: "?", unscored: "·" }[found.state] || "";
    const tip = [gate.title, found.reason, found.state === "closed" ? "Does not pose the test." : ""].filter(Boolean).join("\n");
    const attributes = { class: "chip " + found.state, tabindex: "0", "data-tip": tip };
    row.append(make("li", attributes, make("span", { "aria-hidden": "true" }, sign), " " + text));
  });
  return row;
}

function strip(clip, open) {
  if (!clip.film) return clip.film_note ? make("p", { class: "gone" }, clip.film_note) : null;
  const row = make("div", { class: "strip" });
  clip.film.strip.forEach(([frame, src], k) => {
    const size = { width: clip.film.width, height: clip.film.height };
    const image = make("img", { src: src, ...size, loading: "lazy", decoding: "async", alt: "" });
    const label = "Play from " + frameName(clip, frame);
    const shot = make("button", { type: "button", class: "shot", "aria-label": label }, image, make("span", {}, String(frame)));
    if (k === 0 && clip.target) shot.append(box(clip.target.box));
    shot.addEventListener("click", () => open(seconds(clip, frame)));
    row.append(shot);
  });
  return axis(clip.target ? "target: " + clip.target.name : "", row, "film");
}

function box([x0, y0, x1, y1]) {
  const at = { x: percent(x0), y: percent(y0), width: percent(x1 - x0), height: percent(y1 - y0) };
  return draw("svg", { class: "box", "aria-hidden": "true" }, draw("rect", { class: "under", ...at }), draw("rect", at));
}

// A row of the common time axis: a name in the gutter, the content, and its scale where it has one.
function axis(name, content, kind, scale) {
  return make("div", { class: "axis " + (kind || "") }, make("span", { class: "gutter" }, bdi(name)), content, scale);
}

function lanes(clip) {
  const n = clip.last + 1;
  const rows = clip.lanes.map((lane) => {
    const bar = make("div", { class: "lane" });
    for (const [kind, name, first, last] of lane.phases) {
      const at = seconds(clip, last + 1 - first);
      const text = name + (at === null ? "" : " " + at.toFixed(1) + " s");
      const part = make("span", { class: "phase " + kind, title: name + ": frames " + first + " to " + last }, make("span", {}, text));
      part.style.left = percent(first / n);
      part.style.width = percent((last + 1 - first) / n);
      bar.append(part);
    }
    return axis(lane.name.toLowerCase(), bar);
  });
  if (clip.hurt.length && rows.length) {
    const worst = clip.hurt[0];
    const mark = make("span", { class: "hurt", title: worst.title + ": " + frameName(clip, worst.frame) }, "▼ " + worst.frame);
    const at = (worst.frame + 0.5) / n;
    mark.style.left = percent(at);
    if (at > 0.93) mark.classList.add("end");
    rows.unshift(axis("", make("div", { class: "marks" }, mark)));
  }
  return rows;
}

function memoryLine(clip) {
  const line = make("p", { class: "memory" });
  const reasons = new Set();
  data.metrics.forEach((metric, k) => {
    const score = clip.scores[k];
    if (metric.group !== "Memory" || !score) return;
    if (score[0] === null) reasons.add(score[1]);
    else line.append(make("span", { class: "pair" }, metric.title + " ", make("b", {}, score[1])));
  });
  if (!line.childNodes.length && reasons.size && !clip.failure) {
    line.append(make("span", { class: "quiet" }, "Memory not scored: " + [...reasons].join("; ")));
  }
  return line.childNodes.length ? line : null;
}

const short = (value) => String(Number(value.toPrecision(2)));

function lines(clip, chosen) {
  const n = clip.last + 1;
  return chosen.map((series) => {
    const extent = series.high - series.low || 1;
    let path = "", pen = "M";  // the line breaks where a value is unknown
    series.frame.forEach((f, k) => {
      if (series.value[k] === null) { pen = "M"; return; }
      path += pen + ((1000 * (f + 0.5)) / n).toFixed(1) + " " + (34 - (30 * (series.value[k] - series.low)) / extent).toFixed(1);
      pen = "L";
    });
    const label = series.title + " over time";
    const svg = draw("svg", { class: "line", viewBox: "0 0 1000 38", preserveAspectRatio: "none", role: "img", "aria-label": label });
    for (const [kind, , first, last] of clip.lanes.length ? clip.lanes[0].phases : []) {
      svg.append(draw("rect", { class: "tint " + kind, x: (1000 * first) / n, width: (1000 * (last + 1 - first)) / n, height: 38 }));
    }
    if (series.worst !== null) {
      svg.append(draw("rect", { class: "worst", x: (1000 * (series.worst + 0.5)) / n - 1, width: 2, height: 38 }));
    }
    svg.append(draw("path", { d: path }));
    const scale = make("span", { class: "scale" }, make("span", {}, short(series.high)), make("span", {}, short(series.low)));
    return axis(series.title, svg, "", scale);
  });
}

function hurt(clip) {
  if (!clip.hurt.length) return null;
  const figures = clip.hurt.map((entry) => {
    const pictures = entry.pictures.map((shot) => {
      const near = shot.src && shot.shown !== shot.frame ? " (nearest picture: " + shot.shown + ")" : "";
      const text = shot.words + ": frame " + shot.frame + near;
      const image = shot.src ? make("img", { src: shot.src, loading: "lazy", alt: text }) : make("div", { class: "blank" }, "no picture");
      return make("figure", { class: shot.kind }, image, make("figcaption", {}, text));
    });
    const title = make("h5", {}, entry.title + " ", make("b", {}, entry.value));
    return make("div", { class: "hurting" }, title, make("div", { class: "versus" }, ...pictures));
  });
  return make("div", { class: "block" }, make("h4", {}, "Where memory hurt most"), make("div", { class: "pairs" }, ...figures));
}

function overTime(clip) {
  const main = clip.series.filter((series) => series.main), rest = clip.series.filter((series) => !series.main);
  if (!clip.series.length) return null;
  const block = make("div", { class: "block" }, make("h4", {}, "Over time"), ...lines(clip, main));
  if (rest.length) {
    const summary = make("summary", {}, rest.length + (main.length ? " more" : "") + " series");
    block.append(make("details", { class: "rest" }, summary, ...lines(clip, rest)));
  }
  return block;
}

function scores(clip) {
  const body = make("tbody");
  let group = "";
  data.metrics.forEach((metric, k) => {
    const score = clip.scores[k];
    if (!score) return;
    if (metric.group !== group) {
      group = metric.group;
      body.append(make("tr", { class: "group" }, make("th", { colspan: "3", scope: "rowgroup" }, group)));
    }
    const [low, high] = metric.range;
    const value = make("td", { class: "value" }, score[0] === null ? "–" : score[1]);
    const words = score[0] === null ? score[1] : metric.unit;
    let rest = make("td", { class: "reason", dir: "auto" }, words);
    if (score[0] !== null && metric.bounded) {
      const width = Math.max(0, Math.min(1, (score[0] - low) / (high - low)));
      const part = (kind, share) => draw("rect", { class: kind, width: percent(share), height: "8", rx: "2" });
      const bar = { class: "bar scored", width: "100%", height: "8", "aria-hidden": "true" };
      rest = make("td", {}, draw("svg", bar, part("track", 1), part("fill", width)));
    }
    body.append(make("tr", {}, make("th", { scope: "row" }, metric.title + " " + metric.arrow), value, rest));
  });
  return make("div", { class: "block" }, make("h4", {}, "Scores of this clip"), make("table", { class: "own" }, body));
}

function player(title, place) {
  const figure = make("figure", {}, make("figcaption", {}, title));
  if (!place.src) {
    figure.append(make("p", { class: "gone", dir: "auto" }, place.note));
    return figure;
  }
  const ways = { controls: true, preload: "none", muted: true, loop: true, playsinline: true };
  const video = make("video", { ...ways, src: place.src, poster: place.poster });
  video.addEventListener("error", () => {
    if (figure.querySelector(".gone")) return;
    figure.append(make("p", { class: "gone" }, "This browser cannot play the file, or it has moved: ", bdi(decodeURIComponent(place.src))));
  });
  figure.append(video);
  return figure;
}

function videos(clip) {
  const row = make("div", { class: "videos" }, player("This clip", clip.video));
  if (clip.reference) row.append(player("Reference", clip.reference));
  const block = make("div", { class: "block" }, make("h4", {}, "Watch"), row);
  if (clip.reference && clip.video.src && clip.reference.src) {
    const both = make("button", { type: "button", class: "minor" }, "Play both from the start");
    both.addEventListener("click", () => {
      for (const video of row.querySelectorAll("video")) {
        video.currentTime = 0;
        video.play();
      }
    });
    block.append(both);
  }
  return block;
}

function said(clip) {
  const target = clip.target && clip.target.name;
  const rows = [["Prompt", clip.prompt], ["Target", target], ["Camera", clip.camera], ["Subset", clip.subset]];
  rows.push(["Condition", clip.condition], ["Case", clip.id]);
  if (clip.clock) rows.push(["Clip", clip.clock.frames + " frames, " + clip.clock.fps + " fps, " + clip.clock.size.join(" × ")]);
  const list = make("dl", { class: "said" });
  for (const [name, value] of rows) {
    if (value) list.append(make("div", {}, make("dt", {}, name), make("dd", { dir: "auto" }, bdi(value))));
  }
  return list;
}

function more(clip) {
  return [
    hurt(clip),
    overTime(clip),
    make("div", { class: "halves" }, make("div", {}, videos(clip), said(clip)), scores(clip)),
  ].filter(Boolean);
}

function card(clip) {
  const details = make("details", {}, make("summary", {}, "Worst frames, series, video, all scores"));
  const fill = () => { if (details.childNodes.length === 1) details.append(...more(clip)); };
  details.addEventListener("toggle", fill);
  const open = (time) => {
    fill();
    details.open = true;
    const video = details.querySelector("video");
    if (!video) return;
    video.scrollIntoView({ block: "nearest", behavior: "smooth" });
    const go = () => { video.currentTime = time || 0; };
    if (video.readyState > 0) go();
    else { video.addEventListener("loadedmetadata", go, { once: true }); video.preload = "auto"; video.load(); }
  };
  const link = make("a", { href: "#" + clip.anchor }, bdi(clip.sample));
  const seed = clip.seed ? make("span", { class: "quiet" }, "seed " + clip.seed) : null;
  const condition = clip.condition ? make("span", { class: "quiet" }, bdi(clip.condition)) : null;
  const name = make("h3", {}, link, make("span", { class: "model" }, bdi(clip.model)), condition, seed);
  const prompt = clip.prompt ? make("p", { class: "prompt", dir: "auto" }, clip.prompt) : null;
  const failure = clip.failure ? make("p", { class: "failure", dir: "auto" }, clip.failure) : null;
  const verdict = clip.diagnosis
    ? make("p", { class: "verdict", tabindex: "0", "data-tip": clip.diagnosis.sentences.join("\n") || "No sign of a failure in what could be asked." }, "Diagnosis: " + clip.diagnosis.words)
    : null;
  const rows = clip.failure && !clip.film ? [] : [strip(clip, open), ...lanes(clip)].filter(Boolean);
  const head = make("div", { class: "head" }, name, chips(clip));
  const article = make("article", { class: "clip", id: clip.anchor }, head, prompt, verdict, ...rows, failure, memoryLine(clip), details);
  article.openDetails = () => { fill(); details.open = true; };
  return article;
}

// ---- the list ---------------------------------------------------------------------------------

const search = byId("search"), model = byId("model"), finding = byId("finding"), order = byId("order");
const list = byId("list"), moreButton = byId("more");
let shown = [], built = 0;

function option(select, value, text) {
  select.append(make("option", { value: value }, text));
}

function fillFilters() {
  for (const name of [...new Set(data.clips.map((clip) => clip.model))].sort()) option(model, name, name);
  data.gates.forEach((gate, k) => {
    const labels = [...new Set(data.clips.map((clip) => clip.findings[k] && clip.findings[k].label).filter(Boolean))].sort();
    if (!labels.length) return;
    const group = make("optgroup", { label: gate.title });
    labels.forEach((label) => option(group, k + ":" + label, label));
    finding.append(group);
  });
  if (data.clips.some((clip) => clip.failure)) option(finding, "failed", "failed");
  data.metrics.forEach((metric, k) => {
    if (!metric.arrow || !data.clips.some((clip) => clip.scores[k] && clip.scores[k][0] !== null)) return;
    option(order, String(k), "worst first: " + metric.title);
  });
  model.closest("label").hidden = model.options.length < 3;
}

function matches(clip) {
  if (model.value && clip.model !== model.value) return false;
  if (finding.value === "failed" && !clip.failure) return false;
  if (finding.value.includes(":")) {
    const cut = finding.value.indexOf(":");
    const found = clip.findings[Number(finding.value.slice(0, cut))];
    if (!found || found.label !== finding.value.slice(cut + 1)) return false;
  }
  const words = search.value.trim().toLowerCase().split(/\s+/);
  const target = clip.target && clip.target.name;
  const text = [clip.id, clip.sample, clip.model, clip.prompt, clip.subset, clip.condition, target].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function refresh() {
  shown = data.clips.filter(matches);
  if (order.value !== "") {
    const k = Number(order.value), sign = data.metrics[k].arrow === "↑" ? 1 : -1;
    const rank = (clip) => (clip.scores[k] && clip.scores[k][0] !== null ? sign * clip.scores[k][0] : Infinity);
    shown.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) < rank(b) ? -1 : 1));
  }
  list.replaceChildren();
  built = 0;
  const all = data.clips.length;
  byId("count").textContent = (shown.length === all ? "" : shown.length + " of ") + all + (all === 1 ? " clip" : " clips");
  if (!shown.length) list.append(make("p", { class: "quiet" }, "No clip matches."));
  grow();
}

function grow(upTo) {
  const end = Math.min(shown.length, Math.max(built + PER_PAGE, upTo || 0));
  for (; built < end; built++) list.append(card(shown[built]));
  moreButton.hidden = built >= shown.length;
  moreButton.textContent = "Show more clips (" + (shown.length - built) + " left)";
}

function follow() {
  const place = shown.findIndex((clip) => "#" + clip.anchor === location.hash);
  if (place < 0) return;
  if (place >= built) grow(place + 1);
  const article = byId(shown[place].anchor);
  article.openDetails();
  article.scrollIntoView();
}

// ---- the table, its cards, tooltips -------------------------------------------------------------

function sortTable(button) {
  const table = button.closest("table"), body = table.tBodies[0], column = Number(button.dataset.column);
  const head = button.closest("th");
  const first = button.dataset.first || "ascending";
  const now = head.getAttribute("aria-sort");
  const next = now === first ? (first === "ascending" ? "descending" : "ascending") : first;
  table.querySelectorAll("[aria-sort]").forEach((cell) => cell.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", next);
  const sign = next === "ascending" ? 1 : -1;
  const rows = [...body.rows].map((row) => [row.cells[column].dataset.value, row]);
  rows.sort(([a], [b]) => {
    if (column === 0) return sign * a.localeCompare(b);
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * (Number(a) - Number(b));
  });
  body.append(...rows.map((pair) => pair[1]));
}

function showTip(node) {
  const tip = byId("tip");
  tip.textContent = node.dataset.tip;
  tip.hidden = false;
  const at = node.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const below = at.bottom + 6 + size.height < innerHeight;
  tip.style.left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8)) + "px";
  tip.style.top = (below ? at.bottom + 6 : at.top - size.height - 6) + "px";
}

const hideTip = () => { byId("tip").hidden = true; };
for (const [enter, leave] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
  document.addEventListener(enter, (event) => {
    const node = event.target.closest("[data-tip]");
    if (node) showTip(node);
  });
  document.addEventListener(leave, hideTip);
}
document.addEventListener("scroll", hideTip, { passive: true });
for (const node of document.querySelectorAll(".coverage[data-tip]")) {
  node.setAttribute("aria-label", node.textContent.trim() + " scored; " + node.dataset.tip);
}

document.addEventListener("click", (event) => {
  const sorter = event.target.closest("button[data-column]");
  if (sorter) sortTable(sorter);
  const picker = event.target.closest("button[data-model]");
  if (picker) {
    model.value = picker.dataset.model;
    refresh();
    byId("clips").scrollIntoView({ behavior: "smooth" });
  }
  const info = event.target.closest("a.info");
  const dialog = byId("dialog");
  if (info && dialog.showModal) {
    event.preventDefault();
    const copy = byId(info.hash.slice(1)).cloneNode(true);
    copy.removeAttribute("id");
    dialog.querySelector("div").replaceChildren(copy);
    dialog.showModal();
  }
  if (event.target === dialog) dialog.close();
});

fillFilters();
refresh();
search.addEventListener("input", refresh);
for (const select of [model, finding, order]) select.addEventListener("change", refresh);
document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
moreButton.addEventListener("click", () => grow());
addEventListener("hashchange", follow);
addEventListener("beforeprint", () => {
  for (const node of document.querySelectorAll("details.glossary, #protocol details")) node.open = true;
});
follow();
