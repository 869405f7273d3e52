// One scene: the truth and all models in one player, phases and curves on its time axis, and the chosen clip in detail.
const MOST_PLAYERS = 9;
const sceneRoot = byId("scene");
const sceneKeys = new Set(data.clips.map((clip) => clip.scene));
const pending = new Map(), loaded = new Map();
let scene = null; // what is open
let scrolled = 0; // where the list was

// Scenes lie in small scripts, which call this with a text of JSON: a page on disk may not fetch files.
window.revisitScene = (text) => {
  const content = JSON.parse(text);
  const take = pending.get(content.key);
  if (take) take(content);
};

function loadScene(key) {
  if (!loaded.has(key)) {
    loaded.set(key, new Promise((resolve, reject) => {
      pending.set(key, resolve);
      const script = make("script", { src: "scenes/" + key + ".js" });
      script.addEventListener("error", () => { loaded.delete(key); reject(new Error("scenes/" + key + ".js")); });
      script.addEventListener("load", () => script.remove());
      document.head.append(script);
    }));
  }
  return loaded.get(key);
}

async function follow() {
  const want = asked();
  if (!want.scene || !sceneKeys.has(want.scene)) { closeScene(); return; }
  const frame = want.frame === undefined ? null : Number(want.frame);
  if (scene && scene.key === want.scene) {
    scene.choose(want.clip);
    if (frame !== null && frame !== scene.chosenFrame()) scene.seekTo(frame);
    return;
  }
  let content;
  try {
    content = await loadScene(want.scene);
  } catch (error) {
    showDialog(make("p", { class: "failure" }, "The file of this scene is missing beside the page: " + error.message));
    return;
  }
  if (asked().scene !== want.scene) return; // somebody has moved on
  if (scene) scene.destroy();
  else scrolled = scrollY;
  byId("page").hidden = true;
  sceneRoot.hidden = false;
  scrollTo(0, 0);
  scene = openScene(content, want.clip, frame);
}

function closeScene() {
  if (!scene) return;
  scene.destroy();
  scene = null;
  sceneRoot.hidden = true;
  byId("page").hidden = false;
  scrollTo({ top: scrolled, behavior: "instant" });
}

function openScene(content, anchor, firstFrame) {
  const clips = content.clips;
  const rate = (clip) => (clip.clock && clip.clock.fps) || 24;
  const count = (clip) => (clip.clock ? clip.clock.frames : clip.last + 1) || 1;
  const lengths = clips.map((clip) => count(clip) / rate(clip));
  let align = content.align === "auto" ? (Math.max(...lengths) > 1.1 * Math.min(...lengths) ? "share" : "time") : content.align;
  let chosen = Math.max(0, clips.findIndex((clip) => clip.anchor === anchor));
  if (chosen === 0 && clips[0].truth && clips.length > 1 && !anchor) chosen = 1;
  let onStage = []; // numbers of the clips in the player
  let player = null, layers = [], drawOver = true, written = 0, gone = false;
  const ownLine = clips.map((clip, k) => "k" + (clip.truth ? "t" : (k - clips.filter((c) => c.truth).length) % 9));
  const name = (clip) => clip.model + (clips.some((c) => c !== clip && c.model === clip.model) ? " · seed " + clip.seed : "");

  // ---- time: frames of the player, frames of a clip, and shares of the axis
  const leading = () => clips[onStage.length ? onStage[0] : 0];
  const length = () => {
    const own = onStage.length ? onStage.map((k) => lengths[k]) : lengths;
    return align === "share" ? own[0] : Math.max(...own);
  };
  const frames = () => Math.max(1, Math.round(length() * rate(leading())));
  const shareOf = (clip, frame) => (frame + 0.5) / (align === "share" ? count(clip) : length() * rate(clip));
  const frameOf = (clip, share) => {
    const exact = share * (align === "share" ? count(clip) : length() * rate(clip));
    return Math.max(0, Math.min(count(clip) - 1, Math.floor(exact + 1e-6)));
  };
  const shareNow = () => ((player ? player.frame : still) + 0.5) / frames();
  let still = 0; // the frame, where there is nothing to play

  // ---- what stays while clips are chosen
  const neighbours = [...new Set((shown.some((clip) => clip.scene === content.key) ? shown : data.clips).map((clip) => clip.scene))];
  const at = neighbours.indexOf(content.key);
  const move = (by) => {
    const next = neighbours[at + by];
    if (next) go({ scene: next, clip: null, frame: null });
  };
  const leave = () => go({ scene: null, clip: null, frame: null });
  const about = [clips[clips.length - 1].subset, clips[clips.length - 1].condition].filter(Boolean).join(" · ");
  const earlier = button("‹", "Scene before", "P", () => move(-1)), later = button("›", "Next scene", "N", () => move(1));
  earlier.disabled = at <= 0;
  later.disabled = at >= neighbours.length - 1;
  const head = make(
    "header", { class: "scenebar" }, button("← All clips", "Back to the page", "Esc", leave),
    make("h1", {}, bdi(content.title)), make("span", { class: "quiet" }, bdi(about)),
    make("span", { class: "spacer" }), make("span", { class: "quiet" }, "scene " + (at + 1) + " of " + neighbours.length), earlier, later,
    button("?", "Keys", "?", help),
  );
  const stage = make("div", { class: "stage" });
  const chips = make("div", { class: "who", role: "group", "aria-label": "Clips of this scene" });
  const timeline = make("div", { class: "timeline" });
  const detail = make("section", { class: "detail", "aria-live": "polite" });
  sceneRoot.replaceChildren(head, chips, stage, timeline, detail);

  // ---- the player
  function setStage() {
    const playable = clips.map((_, k) => k).filter((k) => clips[k].video.src);
    const wanted = (k) => (k === chosen ? 0 : clips[k].truth ? 1 : 2);
    onStage = [...playable].sort((a, b) => wanted(a) - wanted(b) || a - b).slice(0, MOST_PLAYERS).sort((a, b) => a - b);
    if (player) player.destroy();
    player = null;
    stage.replaceChildren();
    if (!onStage.length) {
      stage.append(...clips.map((clip) => make("p", { class: "gone", dir: "auto" }, name(clip) + ": " + (clip.video.note || "no video"))));
      return;
    }
    const box = make("div", { class: "players n" + Math.min(onStage.length, 9) });
    stage.append(box);
    const videos = onStage.map((k) => ({ src: clips[k].video.src, fps: rate(clips[k]), frames: count(clips[k]), start: clips[k].video.start || 0, title: name(clips[k]) }));
    player = RevisitPlayer.create(box, { videos: videos, align: align, keys: document, loop: true });
    layers = onStage.map((k, j) => {
      const cell = player.cells[j];
      cell.classList.add(ownLine[k]);
      cell.querySelector("figcaption").append(" ", worth(clips[k]));
      cell.addEventListener("click", () => pick(clips[k]));
      cell.addEventListener("dblclick", () => enlarge());
      const layer = draw("svg", { viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" });
      cell.querySelector(".rp-overlay").append(layer);
      return layer;
    });
    const hidden = clips.filter((clip, k) => !onStage.includes(k) && !clip.video.src);
    stage.append(...hidden.map((clip) => make("p", { class: "gone", dir: "auto" }, name(clip) + ": " + (clip.video.note || "no video"))));
    player.on("frame", ticked);
    player.on("state", (playing) => { if (!playing) remember(); });
  }

  function worth(clip) {
    const scored = headline.filter((k) => clip.scores[k] && clip.scores[k][0] !== null);
    const parts = scored.map((k) => data.metrics[k].title + " " + clip.scores[k][1]);
    return make("span", { class: "worth" }, parts.join(" · "));
  }

  function ticked() {
    if (gone) return;
    timeline.style.setProperty("--at", String(shareNow()));
    readout(null);
    overlay();
    if (player && !player.playing) remember();
  }

  // The frame goes into the address once it rests.
  function remember() {
    clearTimeout(written);
    written = setTimeout(() => { if (!gone) go({ frame: String(chosenFrame()) }, true); }, 250);
  }

  const chosenFrame = () => frameOf(clips[chosen], shareNow());
  function seekShare(share) {
    const frame = Math.max(0, Math.min(frames() - 1, Math.floor(share * frames())));
    if (player) return player.seek(frame);
    still = frame;
    ticked();
    return Promise.resolve(true);
  }
  const seekTo = (frame) => seekShare(shareOf(clips[chosen], frame));

  // ---- overlays
  function nearest(frames, frame) {
    let best = 0;
    for (let k = 1; k < frames.length; k++) if (Math.abs(frames[k] - frame) < Math.abs(frames[best] - frame)) best = k;
    return best;
  }

  function overlay() {
    onStage.forEach((k, j) => {
      const parts = [], clip = clips[k], frame = frameOf(clip, shareNow());
      if (drawOver) {
        for (const one of clip.overlays) {
          if (one.kind === "matches") continue;
          const row = nearest(one.frame, frame);
          const step = one.frame.length > 1 ? (one.frame[one.frame.length - 1] - one.frame[0]) / (one.frame.length - 1) : 1;
          if (Math.abs(one.frame[row] - frame) > Math.max(1, step)) continue;
          if (one.kind === "boxes" && one.box[row]) parts.push(...outline(one.box[row], isHidden(clip, frame)));
          if (one.kind === "masks") {
            const [w, h] = one.grid;
            const path = one.runs[row].map(([y, x, n]) => "M" + x / w + " " + y / h + "h" + n / w + "v" + 1 / h + "h" + -n / w + "z").join("");
            parts.push(draw("path", { class: "mask", d: path }));
          }
        }
        if (!clip.overlays.some((one) => one.kind === "boxes") && clip.target && frame === 0) parts.push(...outline(clip.target.box));
      }
      layers[j].replaceChildren(...parts);
    });
  }

  // Whether the last gate that speaks of phases has a frame among the hidden ones.
  const isHidden = (clip, frame) => clip.lanes.slice(-1).some((one) => one.phases.some(([kind, , first, last]) => kind === "hidden" && first <= frame && frame <= last));

  // A box: dashed where the target is only expected.
  function outline([x0, y0, x1, y1], expected) {
    const at = { x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0) };
    return expected ? [draw("rect", { class: "expected", ...at })] : [draw("rect", { class: "under", ...at }), draw("rect", at)];
  }

  // ---- phases and curves
  const rows = []; // curves on screen: what they read at a share of the axis
  function setTimeline() {
    rows.length = 0;
    const n = (clip) => (align === "share" ? count(clip) : length() * rate(clip));
    const parts = [];
    // A bar for each clip, as its last gate found it (the target's, else the view's); of the chosen one, all that is said.
    clips.forEach((clip, k) => {
      const lanes = k === chosen ? [...clip.lanes].reverse() : clip.lanes.slice(-1);
      lanes.forEach((one, i) => {
        const bar = lane(one.phases.map(([kind, words, first, last]) => [kind, first, last, words]), n(clip));
        const who = make("span", { class: "gutter " + (k === chosen && !i ? "chosen" : "") }, i ? one.name.toLowerCase() : bdi(name(clip)));
        parts.push(make("div", { class: "axis", title: "Phases by: " + one.name.toLowerCase() }, who, bar, make("span")));
      });
    });
    const groups = new Map();
    clips.forEach((clip, k) => clip.series.forEach((line) => {
      if (!groups.has(line.id)) groups.set(line.id, { title: line.title, main: line.main, low: line.low, high: line.high, lines: [] });
      const group = groups.get(line.id);
      group.low = Math.min(group.low, line.low);
      group.high = Math.max(group.high, line.high);
      group.lines.push({ ...line, k: k });
    }));
    const all = [...groups.values()];
    const main = all.filter((group) => group.main), rest = all.filter((group) => !group.main);
    parts.push(...main.map(curve));
    if (rest.length) {
      const fold = make("details", { class: "rest" }, make("summary", {}, rest.length + (main.length ? " more" : "") + " curves"));
      fold.addEventListener("toggle", () => { if (fold.open && fold.childNodes.length === 1) { fold.append(...rest.map(curve)); readout(null); } });
      parts.push(fold);
    }
    if (parts.length) parts.push(make("div", { class: "playhead" }), make("div", { class: "hoverline" }));
    timeline.replaceChildren(...parts);
    timeline.style.setProperty("--at", String(shareNow()));
    readout(null);
  }

  function curve(group) {
    const extent = group.high - group.low || 1;
    const y = (value) => 56 - (52 * (value - group.low)) / extent;
    const svg = draw("svg", { class: "curve", viewBox: "0 0 1000 60", preserveAspectRatio: "none", role: "img", "aria-label": group.title + " over time" });
    const own = clips[chosen].lanes[clips[chosen].lanes.length - 1];
    for (const [kind, , first, last] of own ? own.phases : []) {
      const from = 1000 * shareOf(clips[chosen], first - 0.5), to = 1000 * shareOf(clips[chosen], last + 0.5);
      svg.append(draw("rect", { class: "tint " + kind, x: from, width: Math.max(0, to - from), height: 60 }));
    }
    for (const line of [...group.lines].sort((a, b) => (a.k === chosen) - (b.k === chosen))) {
      let path = "", pen = "M"; // the line breaks where a value is unknown
      line.frame.forEach((frame, i) => {
        if (line.value[i] === null) { pen = "M"; return; }
        path += pen + (1000 * shareOf(clips[line.k], frame)).toFixed(1) + " " + y(line.value[i]).toFixed(1);
        pen = "L";
      });
      if (line.frame.length === 1 && path) path += "h6";
      svg.append(draw("path", { class: ownLine[line.k] + (line.k === chosen ? " chosen" : ""), d: path }));
      if (line.k === chosen && line.worst !== null) svg.append(draw("rect", { class: "worst", x: 1000 * shareOf(clips[chosen], line.worst) - 1, width: 2, height: 60 }));
    }
    const value = make("span", { class: "reading" });
    const scale = make("span", { class: "scale" }, make("span", {}, number(group.high)), value, make("span", {}, number(group.low)));
    const row = make("div", { class: "axis plotted" }, make("span", { class: "gutter" }, group.title), svg, scale);
    rows.push({ group: group, value: value, svg: svg });
    return row;
  }

  // The value of a line at a share of the axis: that of the nearest frame, if one is near.
  function valueAt(line, share) {
    const frame = frameOf(clips[line.k], share);
    const k = nearest(line.frame, frame);
    const step = line.frame.length > 1 ? (line.frame[line.frame.length - 1] - line.frame[0]) / (line.frame.length - 1) : 1;
    return Math.abs(line.frame[k] - frame) <= Math.max(2, 1.5 * step) ? line.value[k] : null;
  }

  function readout(share) {
    const where = share === null ? shareNow() : share;
    for (const { group, value } of rows) {
      const line = group.lines.find((one) => one.k === chosen);
      const read = line ? valueAt(line, where) : null;
      value.textContent = read === null ? "" : number(read);
    }
  }

  const shareAt = (event) => {
    const plot = timeline.querySelector(".lane, .curve");
    if (!plot) return null;
    const box = plot.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    return share < -0.01 || share > 1.01 ? null : Math.max(0, Math.min(0.99999, share));
  };
  timeline.addEventListener("mousemove", (event) => {
    const share = shareAt(event);
    timeline.classList.toggle("hovered", share !== null);
    if (share === null) { readout(null); hideTip(); return; }
    timeline.style.setProperty("--hover", String(share));
    readout(share);
    const row = rows.find((one) => one.svg === event.target.closest("svg"));
    if (!row) { hideTip(); return; }
    const said = row.group.lines.map((line) => [name(clips[line.k]), valueAt(line, share)]).filter((pair) => pair[1] !== null);
    const when = "frame " + frameOf(clips[chosen], share) + ", " + (share * length()).toFixed(2) + " s";
    showTip([when, ...said.map(([who, value]) => who + "  " + number(value))].join("\n"), { left: event.clientX + 14, top: event.clientY, bottom: event.clientY + 10 });
  });
  timeline.addEventListener("mouseleave", () => { timeline.classList.remove("hovered"); readout(null); hideTip(); });
  timeline.addEventListener("click", (event) => {
    if (event.target.closest("summary")) return;
    const share = shareAt(event);
    if (share !== null) seekShare(share);
  });

  // ---- the chosen clip
  function setChips() {
    chips.replaceChildren(...clips.map((clip, k) => {
      const key = k < 9 ? String(k + 1) : "";
      const node = button("", name(clip), key, () => pick(clip));
      node.className = "chip who " + ownLine[k] + (onStage.length && !onStage.includes(k) ? " off" : "");
      node.append(make("i", { class: "swatch" }), bdi(name(clip)));
      node.setAttribute("aria-pressed", String(k === chosen));
      return node;
    }));
    if (clips.some((clip) => clip.overlays.some((one) => one.kind !== "matches"))) {
      const toggle = button("boxes", "Boxes and masks over the pictures", "B", toggleOver);
      toggle.className = "chip minor-chip";
      toggle.setAttribute("aria-pressed", String(drawOver));
      chips.append(toggle);
    }
    if (Math.max(...lengths) > 1.02 * Math.min(...lengths)) {
      const toggle = button(align === "share" ? "by share of length" : "by seconds", "How clips of other lengths go together", "A", toggleAlign);
      toggle.className = "chip minor-chip";
      chips.append(toggle);
    }
  }

  function toggleOver() { drawOver = !drawOver; setChips(); overlay(); }
  function toggleAlign() {
    const share = shareNow();
    align = align === "share" ? "time" : "share";
    setStage();
    choose(clips[chosen].anchor, true);
    seekShare(share);
  }

  function pick(clip) {
    go({ clip: clip.anchor }, true);
    choose(clip.anchor);
  }

  function choose(anchor, again) {
    const k = clips.findIndex((clip) => clip.anchor === anchor);
    if (k < 0 && anchor) return;
    const next = k < 0 ? chosen : k;
    if (next === chosen && !again) return;
    chosen = next;
    if (clips[chosen].video.src && !onStage.includes(chosen)) {
      const share = shareNow();
      setStage();
      seekShare(share);
    }
    mark();
    setChips();
    setTimeline();
    setDetail();
    overlay();
  }

  function mark() {
    if (!player) return;
    onStage.forEach((k, j) => player.cells[j].classList.toggle("chosen", k === chosen));
    const mine = onStage.indexOf(chosen), other = onStage.findIndex((k) => k !== chosen);
    if (mine >= 0 && other >= 0) player.pair(other, mine);
    const clip = clips[chosen];
    player.marks(clip.hurt.map((entry) => ({ frame: Math.floor(shareOf(clip, entry.frame) * frames()), title: entry.title })));
  }

  function enlarge() {
    if (!player) return;
    const cell = player.cells[onStage.indexOf(chosen)];
    if (cell) cell.classList.toggle("big");
  }

  function findings(clip) {
    const row = make("ul", { class: "chips" });
    clip.findings.forEach((found, k) => {
      if (!found) return;
      const gate = data.gates[k];
      const redundant = found.label.toLowerCase().includes(gate.short.toLowerCase());
      const text = [redundant ? found.label : gate.short + ": " + found.label, ...found.seconds].join(" · ");
      const sign = { open: "✓", closed: "–", unsure: "?", unscored: "·" }[found.state] || "";
      const tip = [gate.title, found.reason, found.state === "closed" ? "Does not pose the test." : ""].filter(Boolean).join("\n");
      row.append(make("li", { class: "chip " + found.state, tabindex: "0", "data-tip": tip }, make("span", { "aria-hidden": "true" }, sign), " " + text));
    });
    return row.childNodes.length ? row : null;
  }

  // A still picture that opens larger: the frame of the video itself where there is one.
  function picture(clip, frame, src, words) {
    const node = make("button", { type: "button", class: "enlarge", title: words + ": enlarge" });
    node.append(src ? make("img", { src: src, loading: "lazy", alt: words }) : make("span", { class: "blank" }, "no picture"));
    node.addEventListener("click", () => closer(clip, frame, src, words));
    return node;
  }

  function closer(clip, frame, src, words) {
    const large = make("div", { class: "large" });
    if (clip.video.src) {
      const video = make("video", { preload: "auto", playsinline: true, poster: src });
      video.muted = true;
      video.addEventListener("loadedmetadata", () => { video.currentTime = ((clip.video.start || 0) + frame + 0.5) / rate(clip); }, { once: true });
      video.src = clip.video.src;
      large.append(video);
    } else if (src) large.append(make("img", { src: src, alt: words }));
    const jump = button("Go there in the player", "Go to frame " + frame, "", () => {
      byId("dialog").close();
      seekShare(shareOf(clip, frame));
      scrollTo({ top: 0, behavior: "smooth" });
    });
    jump.className = "minor";
    const seconds = " (" + (frame / rate(clip)).toFixed(2) + " s)";
    showDialog(large, make("p", { class: "under" }, bdi(name(clip)), ", " + words + ", frame " + frame + seconds + " ", jump));
  }

  function hurt(clip) {
    if (!clip.hurt.length) return null;
    const truth = clips.find((one) => one.truth) || clip;
    const figures = clip.hurt.map((entry) => {
      const shots = entry.pictures.map((shot) => {
        const near = shot.src && shot.shown !== shot.frame ? " (picture: " + shot.shown + ")" : "";
        const text = shot.words + ", frame " + shot.frame + near;
        return make("figure", { class: shot.kind }, picture(shot.words === "truth" ? truth : clip, shot.frame, shot.src, shot.words), make("figcaption", {}, text));
      });
      return make("div", { class: "hurting" }, make("h5", {}, entry.title + " ", make("b", {}, entry.value)), make("div", { class: "versus" }, ...shots));
    });
    return make("div", { class: "block" }, make("h4", {}, "Where memory hurt most"), make("div", { class: "pairs" }, ...figures));
  }

  function matches(clip) {
    const found = clip.overlays.find((one) => one.kind === "matches");
    if (!found) return null;
    const figures = found.pairs.map((pair, k) => {
      const svg = draw("svg", { class: "matches", viewBox: "0 0 2.04 1", preserveAspectRatio: "none", "aria-hidden": "true" });
      for (const [x, y, u, v] of pair.points) svg.append(draw("line", { x1: x, y1: y, x2: 1.04 + u, y2: v }));
      const film = clip.film;
      const image = (frame) => {
        const near = film ? film.frames[nearest(film.frames, frame)] : null;
        return near === null ? make("span", { class: "blank" }, "no picture") : make("img", { src: shotAt(film, near), loading: "lazy", alt: "frame " + near });
      };
      const caption = "frames " + found.frame[k] + " and " + pair.other + ": " + pair.n + " matches";
      return make("figure", {}, make("div", { class: "matched" }, image(found.frame[k]), image(pair.other), svg), make("figcaption", {}, caption));
    });
    return make("div", { class: "block" }, make("h4", {}, found.title), make("div", { class: "pairs" }, ...figures));
  }

  function judged(clip) {
    if (!clip.judged.length) return null;
    const blocks = clip.judged.map((one) => {
      const body = make("tbody");
      for (const row of one.rows) {
        const kind = row.good === null ? "" : row.good ? "good" : "bad";
        const sure = row.p === null ? "" : "p(yes) " + row.p;
        body.append(make("tr", { class: kind }, make("td", { class: "quiet" }, row.about), make("td", { dir: "auto" }, row.question), make("td", { class: "value" }, row.answer), make("td", { class: "quiet" }, sure)));
      }
      const shots = make("div", { class: "shots" }, ...one.shots.map(([frame, src]) => picture(clip, frame, src, "as the judge saw it")));
      const problems = one.problems.map((text) => make("p", { class: "failure", dir: "auto" }, text));
      return make("div", { class: "judge" }, make("h5", {}, "said by ", bdi(one.judge)), shots, make("table", { class: "own" }, body), ...problems);
    });
    return make("div", { class: "block" }, make("h4", {}, "What the judge said"), ...blocks);
  }

  function scores(clip) {
    const known = data.metrics.map((metric, k) => k).filter((k) => clip.scores[k]);
    if (!known.length) return [make("p", { class: "quiet" }, clip.truth ? "The truth was not scored as a clip of its own in this run." : "No metric was asked.")];
    const first = known.filter((k) => headline.includes(k) || data.metrics[k].group === "Memory");
    const rest = known.filter((k) => !first.includes(k));
    const more = rest.length ? make("details", {}, make("summary", {}, rest.length + (rest.length === 1 ? " more score" : " more scores")), scoreTable(clip, rest)) : null;
    return [first.length ? scoreTable(clip, first) : null, more].filter(Boolean);
  }

  function scoreTable(clip, wanted) {
    const body = make("tbody");
    let group = "";
    for (const k of wanted) {
      const metric = data.metrics[k], score = clip.scores[k];
      if (metric.group !== group) {
        group = metric.group;
        body.append(make("tr", { class: "group" }, make("th", { colspan: "3", scope: "rowgroup" }, group)));
      }
      const [low, high] = metric.range;
      const value = make("td", { class: "value" }, score[0] === null ? "–" : score[1]);
      let rest = make("td", { class: "reason", dir: "auto" }, score[0] === null ? score[1] : metric.unit);
      if (score[0] !== null && metric.bounded) {
        const width = Math.max(0, Math.min(1, (score[0] - low) / (high - low)));
        const part = (kind, share) => draw("rect", { class: kind, width: percent(share), height: "8", rx: "2" });
        rest = make("td", {}, draw("svg", { class: "bar scored", width: "100%", height: "8", "aria-hidden": "true" }, part("track", 1), part("fill", width)));
      }
      if (score[2]) rest.append(make("span", { class: "measured", dir: "auto" }, score[2]));
      body.append(make("tr", {}, make("th", { scope: "row" }, metric.title + " " + metric.arrow), value, rest));
    }
    return make("table", { class: "own" }, body);
  }

  function said(clip) {
    const target = clip.target && clip.target.name;
    const rows = [["Prompt", clip.prompt], ["Target", target], ["Camera", clip.camera], ["Case", clip.id]];
    if (clip.clock) rows.push(["Clip", clip.clock.frames + " frames, " + clip.clock.fps + " fps, " + clip.clock.size.join(" × ")]);
    const list = make("dl", { class: "said" });
    for (const [term, value] of rows) {
      if (value) list.append(make("div", {}, make("dt", {}, term), make("dd", { dir: "auto" }, bdi(value))));
    }
    return list;
  }

  function setDetail() {
    const clip = clips[chosen];
    const words = clip.diagnosis ? make("p", { class: "words", tabindex: "0", "data-tip": clip.diagnosis.sentences.join("\n") || null, dir: "auto" }, clip.diagnosis.words) : null;
    const isSaid = clip.diagnosis && clip.diagnosis.words.includes(clip.failure);
    const failure = clip.failure && !isSaid ? make("p", { class: "failure", dir: "auto" }, clip.failure) : null;
    const note = clip.film_note ? make("p", { class: "gone" }, clip.film_note) : null;
    const left = make("div", {}, ...[words, findings(clip), failure, note, hurt(clip), matches(clip), judged(clip), said(clip)].filter(Boolean));
    const right = make("div", { class: "block" }, make("h4", {}, "Scores of this clip"), ...scores(clip));
    detail.replaceChildren(make("h2", { class: ownLine[chosen] }, make("i", { class: "swatch" }), bdi(name(clip))), make("div", { class: "halves" }, left, right));
  }

  // ---- keys
  function help() {
    const keys = [
      ["space", "play or pause"], ["← →", "one frame; with shift ten"], ["Home End", "first and last frame"], ["[ ]", "slower, faster"], ["L", "loop"],
      ["W", "truth over the chosen clip, with a slider"], ["1 … 9", "choose a clip"], ["Z", "enlarge the chosen clip"], ["B", "boxes and masks"],
      ["A", "align by seconds or by share"], ["N P", "next scene, scene before"], ["Esc", "back to the page"],
    ];
    showDialog(make("h4", {}, "Keys"), make("dl", { class: "keys" }, ...keys.map(([key, words]) => make("div", {}, make("dt", {}, key), make("dd", {}, words)))));
  }

  const own = { n: () => move(1), p: () => move(-1), b: toggleOver, z: enlarge, a: toggleAlign, "?": help, Escape: leave };
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || byId("dialog").open) return;
    if (event.target instanceof Element && event.target.closest("textarea, select, input:not([type=range])")) return;
    const number = Number(event.key);
    if (number >= 1 && number <= clips.length) {
      pick(clips[number - 1]);
      event.preventDefault();
      return;
    }
    const does = own[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (does) { event.preventDefault(); does(); }
  }
  document.addEventListener("keydown", pressed);

  setStage();
  mark();
  setChips();
  setTimeline();
  setDetail();
  if (firstFrame !== null && Number.isFinite(firstFrame)) seekTo(firstFrame);
  else ticked();
  return {
    key: content.key, choose, seekTo, chosenFrame, get player() { return player; }, clips,
    destroy() {
      gone = true;
      clearTimeout(written);
      document.removeEventListener("keydown", pressed);
      if (player) player.destroy();
      hideTip();
      sceneRoot.replaceChildren();
    },
  };
}

addEventListener("hashchange", () => { readFilters(); follow(); });
addEventListener("popstate", follow);
follow();
