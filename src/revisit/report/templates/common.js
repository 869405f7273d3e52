// What list and scenes share: nodes, the state in the address, tips and dialogs. Text goes in by textContent only.
const SVG = document.querySelector("svg").namespaceURI;
const data = JSON.parse(document.getElementById("data").textContent);
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

function button(text, label, key, does) {
  const node = make("button", { type: "button", title: key ? label + " (" + key + ")" : label, "aria-label": label }, text);
  node.addEventListener("click", () => does());
  return node;
}

const bdi = (text) => make("bdi", {}, text);
const percent = (share) => (100 * share).toFixed(2) + "%";
// Two decimals, none from 100 on, two significant digits below 0.1: as everywhere (results/rules.py).
const number = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) > 1e-9 && Math.abs(value) < 0.0995 ? value.toPrecision(2) : value.toFixed(2)).replace("-", "−");
const shotAt = (film, frame) => "frames/" + film.name + "/" + String(frame).padStart(6, "0") + ".jpg";

// ---- the address -----------------------------------------------------------------------------
// #q=words&model=name&finding=1:label&order=3&scene=key&clip=anchor&frame=40: it survives a reload and can be sent.

const KNOWN = ["q", "model", "finding", "order", "scene", "clip", "frame"];

function asked() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KNOWN.filter((name) => given.get(name)).map((name) => [name, given.get(name)]));
}

function address(changes) {
  const next = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...asked(), ...changes })) if (value !== null && value !== "") next.set(name, value);
  return "#" + next;
}

// A step that the back button takes back, or a quiet change of the present one.
function go(changes, quietly) {
  const next = address(changes);
  if (next === (location.hash || "#")) return;
  if (quietly) history.replaceState(null, "", next);
  else location.hash = next;
}

// ---- tips and dialogs ------------------------------------------------------------------------

function showTip(text, at) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  const below = at.bottom + 6 + size.height < innerHeight;
  tip.style.left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8)) + "px";
  tip.style.top = (below ? at.bottom + 6 : at.top - size.height - 6) + "px";
}

const hideTip = () => { byId("tip").hidden = true; };
for (const [enter, leave] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
  document.addEventListener(enter, (event) => {
    const node = event.target.closest("[data-tip]");
    if (node) showTip(node.dataset.tip, node.getBoundingClientRect());
  });
  document.addEventListener(leave, hideTip);
}
document.addEventListener("scroll", hideTip, { passive: true });
for (const node of document.querySelectorAll(".coverage[data-tip]")) {
  node.setAttribute("aria-label", node.textContent.trim() + " scored; " + node.dataset.tip);
}

function showDialog(...content) {
  const dialog = byId("dialog");
  dialog.querySelector("div").replaceChildren(...content);
  if (!dialog.open) dialog.showModal();
}
byId("dialog").addEventListener("close", () => byId("dialog").querySelector("div").replaceChildren());

// Links within the page open what hides their target, and leave the state in the address alone.
function reveal(id) {
  const target = byId(id);
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView({ behavior: "smooth" });
}

document.addEventListener("click", (event) => {
  const info = event.target.closest("a.info");
  if (info) {
    event.preventDefault();
    const card = byId(info.hash.slice(1));
    if (!card) return;
    const copy = card.cloneNode(true);
    copy.removeAttribute("id");
    showDialog(copy);
    return;
  }
  const link = event.target.closest("a[href^='#']");
  if (link && !link.hash.includes("=")) {
    event.preventDefault();
    reveal(link.hash.slice(1));
  } else if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    // Links to scenes are written without the filters of the list: keep those.
    event.preventDefault();
    go(Object.fromEntries(new URLSearchParams(link.hash.slice(1))));
  }
  if (event.target === byId("dialog")) byId("dialog").close();
});

addEventListener("beforeprint", () => {
  for (const node of document.querySelectorAll("details.fold, details.glossary")) node.open = true;
});
