"use strict";
// The page of an item: the player, answers by keyboard, time on task, drafts that survive a closed tab, marks and boxes.
const place = document.getElementById("player");
const form = document.getElementById("form");
const task = place.dataset.task;
const target = JSON.parse(place.dataset.target);
const player = RevisitPlayer.create(place, { videos: JSON.parse(place.dataset.videos), loop: true });
window.player = player;
const field = (name) => form.elements.namedItem(name);
const output = (id) => document.getElementById(id);

// ---- time on task: only while the page is in front ---------------------------------------------

let seconds = Number(field("seconds").value) || 0, since = document.hidden ? null : performance.now();
function count() {
  if (since !== null) { seconds += (performance.now() - since) / 1000; since = performance.now(); }
  field("seconds").value = seconds.toFixed(1);
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { count(); since = null; save(); } else since = performance.now();
});

// ---- drafts --------------------------------------------------------------------------------------

let sent = false;
function save() {
  if (sent) return Promise.resolve();
  count();
  const body = new URLSearchParams(new FormData(form));
  return fetch("/draft/" + form.dataset.item, { method: "POST", body, keepalive: true })
    .then((answer) => answer.ok ? "" : told(answer))
    .catch(() => "The server cannot be reached.")
    .then((problem) => {
      output("saved").textContent = problem ? "not kept: " + problem : "kept";
      clearTimeout(waiting);
      if (problem && !sent) waiting = setTimeout(save, 10000);
    });
}
let waiting = null;
// The sentence of an answer that says no: of a page the one it shows, else all of it.
function told(answer) {
  return answer.text().then((text) => {
    if (!(answer.headers.get("content-type") || "").startsWith("text/html")) return text || "Error " + answer.status + ".";
    const said = new DOMParser().parseFromString(text, "text/html").querySelector(".problem");
    return said ? said.textContent : "Error " + answer.status + ".";
  });
}
form.addEventListener("input", () => {
  output("saved").textContent = "";
  clearTimeout(waiting);
  waiting = setTimeout(save, 400);
});
form.addEventListener("change", () => { clearTimeout(waiting); save(); });
addEventListener("pagehide", () => { if (!sent) save(); });

// ---- sending: the page stays, with all that was entered, until the server has it --------------------

function showProblem(sentence) {
  let shown = form.querySelector(".problem");
  if (!shown) {
    shown = document.createElement("p");
    shown.className = "problem";
    shown.setAttribute("role", "alert");
    form.prepend(shown);
  }
  shown.textContent = sentence;
  shown.scrollIntoView({ block: "nearest" });
}
function send(what) {
  if (sent) return;
  sent = true;
  clearTimeout(waiting);
  player.pause();
  const stay = (sentence) => { sent = false; showProblem(sentence); };
  fetch(what.action, { method: "POST", body: new URLSearchParams(new FormData(what)) })
    .then((answer) => {
      if (answer.redirected) location.assign(answer.url); // it was stored
      else return told(answer).then(stay);
    })
    .catch(() => stay("The server cannot be reached. Keep this page open, and send it again in a minute."));
}
form.addEventListener("submit", (event) => { event.preventDefault(); count(); send(form); });
output("undo").addEventListener("submit", (event) => { event.preventDefault(); save().then(() => send(output("undo"))); });

// ---- questions by keyboard -------------------------------------------------------------------------

const questions = [...form.querySelectorAll("fieldset[data-question]")];
const inputs = (question) => [...question.querySelectorAll("input")];
const answered = (question) => inputs(question).some((input) => input.checked);
const open = () => questions.filter((question) => !question.hidden);
let now = null, started = false; // nothing scrolls before the rater has done something
function goTo(question) {
  questions.forEach((one) => one.classList.toggle("now", one === question));
  now = question;
  if (question && started) question.scrollIntoView({ block: "nearest" });
}
function next() { goTo(open().find((question) => !answered(question)) || null); }
function refresh() { // what cannot be judged is not asked
  const judged = form.querySelector('input[name="q.judgeable"]:checked');
  const skip = judged !== null && judged.value !== "both";
  questions.forEach((question) => { if ("returned" in question.dataset) question.hidden = skip; });
}
form.addEventListener("change", (event) => {
  refresh();
  const question = event.target.closest("fieldset");
  if (question && !("several" in question.dataset)) next();
});
form.addEventListener("focusin", (event) => {
  const question = event.target.closest("fieldset");
  if (question) goTo(question);
});
function choose(number) {
  const question = now || open()[open().length - 1];
  const input = question && inputs(question)[number - 1];
  if (!input) return;
  input.checked = input.type === "checkbox" ? !input.checked : true;
  input.dispatchEvent(new Event("change", { bubbles: true }));
}
function back() {
  const shown = open(), at = now ? shown.indexOf(now) : shown.length;
  if (at > 0) goTo(shown[at - 1]);
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("textarea, input:not([type=radio]):not([type=checkbox]):not([type=range]), select");
  if (typing) { if (event.key === "Escape") typing.blur(); return; }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (/^[1-9]$/.test(key)) choose(Number(key));
  else if (key === "Backspace") back();
  else if (key === "Enter" && !event.target.closest("button, a")) form.requestSubmit();
  else if (key === "u") { const undo = document.querySelector("#undo button"); if (!undo.disabled) undo.click(); }
  else if (key === "c") field("comment").focus();
  else if (marking[key]) marking[key]();
  else return;
  event.preventDefault();
});

// ---- marks -------------------------------------------------------------------------------------------

const marking = {};
function showMark(name) {
  const value = field("frame." + name).value;
  output(name + "-at").textContent = value === "" ? "" : "frame " + value;
  const marks = ["gone", "back", "worst"].filter((one) => field("frame." + one) && field("frame." + one).value !== "");
  player.marks(marks.map((one) => ({ frame: Number(field("frame." + one).value), title: one })));
}
function mark(name, value) {
  field("frame." + name).value = value;
  showMark(name);
  form.dispatchEvent(new Event("change"));
}
function verdict() { // follows from the marks; "cannot tell" stays with the rater
  const gone = field("frame.gone").value, returned = field("frame.back").value;
  const said = gone === "" ? null : returned === "" ? "hidden, not returned" : "hidden, returned";
  const input = said && form.querySelector('input[name="q.target"][value="' + said + '"]');
  if (input) input.checked = true;
}
if (task === "marks") {
  marking.g = () => { mark("gone", String(player.frame)); verdict(); };
  marking.b = () => { mark("back", String(player.frame)); verdict(); };
  marking.x = () => { mark("gone", ""); mark("back", ""); };
  output("mark-gone").addEventListener("click", marking.g);
  output("mark-back").addEventListener("click", marking.b);
  output("unmark").addEventListener("click", marking.x);
  ["gone", "back"].forEach(showMark);
}
if (task === "failure") {
  marking.g = () => mark("worst", String(player.frame));
  output("mark-worst").addEventListener("click", marking.g);
  showMark("worst");
}

// ---- boxes -------------------------------------------------------------------------------------------

// The picture within the video element, which may have bars beside or above it.
function picture(video, overlay) {
  const width = overlay.clientWidth, height = overlay.clientHeight;
  const scale = Math.min(width / (video.videoWidth || width), height / (video.videoHeight || height));
  const w = (video.videoWidth || width) * scale, h = (video.videoHeight || height) * scale;
  return { x: (width - w) / 2, y: (height - h) / 2, w, h };
}
function drawn(overlay, video, entry, asked) {
  const box = document.createElement("div"), label = document.createElement("span"), at = picture(video, overlay);
  box.className = asked ? "box asked" : "box";
  label.textContent = entry.name;
  box.append(label);
  box.style.left = at.x + entry.box[0] * at.w + "px";
  box.style.top = at.y + entry.box[1] * at.h + "px";
  box.style.width = (entry.box[2] - entry.box[0]) * at.w + "px";
  box.style.height = (entry.box[3] - entry.box[1]) * at.h + "px";
  overlay.append(box);
}
function boxes() { return field("boxes") && field("boxes").value ? JSON.parse(field("boxes").value) : []; }
function showBoxes() {
  player.cells.forEach((cell, k) => {
    const overlay = cell.querySelector(".rp-overlay"), video = player.videos[k];
    overlay.replaceChildren();
    if (player.frame !== 0 || player.playing) return;
    if (task === "marks") boxes().forEach((entry) => drawn(overlay, video, entry, false));
    else if (target) drawn(overlay, video, target, true);
  });
}
player.on("frame", showBoxes).on("state", showBoxes).on("ready", showBoxes);
addEventListener("resize", showBoxes);
player.videos.forEach((video) => video.addEventListener("loadedmetadata", showBoxes));
if (task === "marks") {
  const cell = player.cells[0], overlay = cell.querySelector(".rp-overlay"), video = player.videos[0];
  const name = () => output("target").value.trim() || "target";
  if (!field("boxes").value && target) field("boxes").value = JSON.stringify([{ ...target, frame: 0 }]);
  cell.classList.add("drawing");
  let from = null;
  const at = (event) => {
    const inside = picture(video, overlay), rect = overlay.getBoundingClientRect();
    const share = (value, start, size) => Math.max(0, Math.min(1, (value - start) / size));
    return [share(event.clientX - rect.left, inside.x, inside.w), share(event.clientY - rect.top, inside.y, inside.h)];
  };
  const stretch = (event) => {
    const to = at(event);
    const box = [Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[0], to[0]), Math.max(from[1], to[1])];
    field("boxes").value = JSON.stringify([{ name: name(), frame: 0, box: box.map((value) => Number(value.toFixed(4))) }]);
    showBoxes();
    return box;
  };
  overlay.addEventListener("pointerdown", (event) => {
    if (player.frame !== 0 || player.playing) { player.pause().then(() => player.seek(0)); return; }
    from = at(event);
    overlay.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  overlay.addEventListener("pointermove", (event) => { if (from) stretch(event); });
  overlay.addEventListener("pointerup", (event) => {
    if (!from) return;
    const box = stretch(event);
    from = null;
    if (box[2] - box[0] < 0.005 || box[3] - box[1] < 0.005) field("boxes").value = "";
    showBoxes();
    form.dispatchEvent(new Event("change"));
  });
  output("unbox").addEventListener("click", () => { field("boxes").value = ""; player.pause().then(() => player.seek(0)).then(showBoxes); });
  output("target").addEventListener("change", () => {
    field("boxes").value = JSON.stringify(boxes().map((entry) => ({ ...entry, name: name() })));
    showBoxes();
  });
}

refresh();
next();
started = true;
