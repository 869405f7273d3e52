"use strict";
/* One player for several videos in step: play, pause, step, seek, speed, loop, A/B wipe, keyboard.
 *
 *   const player = RevisitPlayer.create(element, {
 *     videos: [{ src, fps, frames, start, title }],  // start: first frame of the file that belongs to the clip (0)
 *     align: "time",      // "time": the same second of each; "share": the same share of each length
 *     loop: true,         // or [first, last]: a stretch of frames
 *     speed: 1,
 *     keys: document,     // who listens for keys; null for nobody
 *     marks: [{ frame, title }],  // ticks on the slider
 *   });
 *   player.play(), pause(), toggle(), step(frames), seek(frame), speed(rate), loop(true | false | [first, last]),
 *   player.wipe(share | null)   // two videos on top of each other, cut at a share of the width
 *   player.pair(a, b)           // which two: the first ones unless said
 *   player.marks([{ frame, title }])
 *   player.frame, player.frames, player.playing, player.rate, player.videos, player.cells, player.skew()
 *   player.on("frame" | "state" | "ready" | "error", (value) => ...), player.destroy()
 *
 * Frames are counted from 0 by the frame rate of the first video; the others follow by time or by share. play, pause,
 * step and seek give promises that are kept when every video shows its frame. skew() is the largest distance between a
 * video and where it should be, in frames of that video. Nothing is loaded but the given files, and text is written by
 * textContent alone, so names may hold anything.
 */
const RevisitPlayer = (() => {
  const SPEEDS = [0.1, 0.25, 0.5, 1, 1.5, 2];
  const AHEAD = 0.3; // of a frame: who is farther ahead of the slowest crawls
  const CRAWL = 0.0625; // the slowest that browsers play
  const SHOWING = 1000; // milliseconds that a seek waits for its picture on the screen (a hidden tab shows none)

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  }

  function create(root, options) {
    const settings = { align: "time", loop: true, speed: 1, keys: document, marks: [], ...options };
    const clips = settings.videos.map((clip) => ({ title: "", ...clip, start: clip.start || 0 }));
    const lengths = clips.map((clip) => clip.frames / clip.fps); // in seconds
    const fps = clips[0].fps;
    const length = settings.align === "share" ? lengths[0] : Math.max(...lengths);
    const frames = Math.max(1, Math.round(length * fps));
    const rates = lengths.map((own) => (settings.align === "share" ? own / length : 1));
    const leader = settings.align === "share" ? 0 : lengths.indexOf(length); // who has the most to show keeps the time
    const listeners = { frame: [], state: [], ready: [], error: [] };
    const say = (name, value) => listeners[name].forEach((listener) => listener(value));
    let playing = false, wanted = 0, rate = settings.speed, looped = settings.loop, cut = null, wiped = [0, 1];
    let pace = 1, lag = 0, looked = 0; // share of the asked speed; seconds between two looks, and the last one
    let told = -1, asked = 0, gone = false; // `asked` grows with every seek; an older one is given up

    // ---- what is seen --------------------------------------------------------------------------

    const grid = make("div", { class: "rp-grid" });
    const videos = [], cells = [], pictured = []; // pictured: the time of the picture on the screen
    clips.forEach((clip, k) => {
      const video = make("video", { preload: "auto", playsinline: true, disablepictureinpicture: true });
      video.muted = true;
      const picture = make("div", { class: "rp-frame" }, video, make("div", { class: "rp-overlay" }));
      const cell = make("figure", { class: "rp-cell" }, picture);
      if (clip.title) cell.append(make("figcaption", {}, clip.title));
      video.addEventListener("error", () => {
        if (gone) return;
        cell.append(make("p", { class: "rp-gone" }, "This browser cannot play the video."));
        say("error", k);
      });
      if (video.requestVideoFrameCallback) {
        const note = (_, picture) => {
          pictured[k] = picture.mediaTime;
          if (!gone) video.requestVideoFrameCallback(note);
        };
        video.requestVideoFrameCallback(note);
      }
      video.src = clip.src;
      pictured.push(-1);
      videos.push(video);
      cells.push(cell);
      grid.append(cell);
    });
    const button = (text, label, key, does) => {
      const node = make("button", { type: "button", title: label + " (" + key + ")", "aria-label": label }, text);
      node.addEventListener("click", () => does());
      return node;
    };
    const playButton = button("▶", "Play or pause", "space", toggle);
    const loopButton = button("loop", "Loop", "L", () => loop(!looped));
    const wipeButton = button("A|B", "A over B", "W", () => wipe(cut === null ? 0.5 : null));
    const slider = make("input", { type: "range", min: "0", max: String(frames - 1), value: "0", step: "1", "aria-label": "Frame" });
    slider.addEventListener("input", () => { stop(); seek(Number(slider.value)); });
    const ticks = make("div", { class: "rp-ticks" });
    const counter = make("output", { class: "rp-count" });
    const speeds = make("select", { title: "Speed ([ and ])", "aria-label": "Speed" });
    for (const value of SPEEDS) speeds.append(make("option", { value: String(value) }, value + "×"));
    speeds.addEventListener("change", () => speed(Number(speeds.value)));
    const wiper = make("input", { type: "range", min: "0", max: "1000", value: "500", "aria-label": "Where A ends and B begins", class: "rp-wiper" });
    wiper.addEventListener("input", () => wipe(Number(wiper.value) / 1000));
    wiper.hidden = true;
    const names = make("div", { class: "rp-names", hidden: true }, make("span"), make("span")); // A left, B right
    const bar = make(
      "div", { class: "rp-bar" }, playButton, button("‹", "One frame back", "←", () => step(-1)),
      button("›", "One frame on", "→", () => step(1)), make("div", { class: "rp-line" }, slider, ticks), counter, speeds, loopButton,
    );
    if (videos.length > 1) bar.append(wipeButton);
    root.classList.add("rp");
    root.append(names, grid, wiper, bar);

    function marks(given) {
      ticks.replaceChildren(...given.map((mark) => {
        const tick = make("span", { title: mark.title });
        tick.style.left = (100 * (mark.frame + 0.5)) / frames + "%";
        return tick;
      }));
    }

    function show() {
      playButton.textContent = playing ? "❚❚" : "▶";
      loopButton.setAttribute("aria-pressed", String(Boolean(looped)));
      wipeButton.setAttribute("aria-pressed", String(cut !== null));
      speeds.value = String(rate);
    }

    function tell() {
      const frame = now();
      slider.value = String(frame);
      counter.textContent = frame + " / " + (frames - 1);
      if (frame !== told) { told = frame; say("frame", frame); }
    }

    // ---- the clock -----------------------------------------------------------------------------

    const first = (k) => clips[k].start / clips[k].fps; // the second of the file at which the clip begins
    const clock = (k) => (videos[k].currentTime - first(k)) / rates[k]; // what video k says the time is
    // Where video k should be at a time; a shorter clip rests on its last frame.
    const place = (k, time) => first(k) + Math.min(time * rates[k], lengths[k] - 0.5 / clips[k].fps);
    const over = (k, time) => time * rates[k] >= lengths[k] - 0.5 / clips[k].fps;
    const clamp = (frame) => Math.max(0, Math.min(frames - 1, Math.round(frame)));
    const now = () => (playing ? clamp(Math.floor(clock(leader) * fps + 1e-3)) : wanted);
    const stretch = () => (Array.isArray(looped) ? looped.map(clamp) : [0, frames - 1]);

    function skew() {
      const time = playing ? clock(leader) : (wanted + 0.5) / fps;
      // On its last frame a video may be said to be at its end: place() cuts both alike.
      const apart = videos.map((video, k) => (video.error ? 0 : Math.abs(place(k, clock(k)) - place(k, time)) * clips[k].fps));
      return Math.max(...apart);
    }

    function settled(video) {
      const names = ["seeked", "canplay", "loadeddata", "error"];
      return new Promise((resolve) => {
        const done = () => {
          if (!video.error && !gone && (video.seeking || video.readyState < 2)) return;
          names.forEach((name) => video.removeEventListener(name, done));
          resolve();
        };
        names.forEach((name) => video.addEventListener(name, done));
        done();
      });
    }

    // A browser may say that it has sought before the new picture is on the screen; it then tells of each picture.
    function shown(video, k) {
      if (!video.requestVideoFrameCallback || video.error || document.hidden) return Promise.resolve();
      const target = video.currentTime;
      const there = () => Math.abs(target - 0.5 / clips[k].fps - pictured[k]) < 0.75 / clips[k].fps;
      return new Promise((resolve) => {
        const end = performance.now() + SHOWING;
        const look = () => {
          if (there() || gone || video.currentTime !== target || performance.now() > end) resolve();
          else setTimeout(look, 5);
        };
        look();
      });
    }

    // All videos to one frame. True when they show it, false when another seek came in between.
    async function seek(frame, thenPlay = playing) {
      const mine = ++asked;
      wanted = clamp(frame);
      playing = false;
      videos.forEach((video, k) => {
        video.pause();
        video.currentTime = place(k, (wanted + 0.5) / fps); // the middle: at an edge, browsers differ on which frame it is
      });
      tell();
      await Promise.all(videos.map((video, k) => settled(video).then(() => shown(video, k))));
      if (mine !== asked || gone) return false;
      if (thenPlay) start();
      return true;
    }

    function setRate(k, value) {
      const wanted = Math.max(CRAWL, Math.min(16, value));
      if (Math.abs(videos[k].playbackRate / wanted - 1) > 0.02) videos[k].playbackRate = wanted;
    }

    function start() {
      playing = true;
      pace = 0.1;
      lag = 0.05;
      looked = performance.now();
      videos.forEach((video, k) => {
        setRate(k, pace * rate * rates[k]);
        if (!over(k, (wanted + 0.5) / fps)) video.play().catch(() => {});
      });
      show();
      say("state", true);
      requestAnimationFrame(watch);
    }

    // While playing: who is ahead of the slowest crawls until it is there. A busy machine looks seldom, and videos drift
    // apart between two looks; all then play slower, in step rather than in time. They begin slowly for the same reason.
    function watch() {
      if (!playing || gone) return;
      const [begin, end] = stretch();
      const time = clock(leader);
      if (videos[leader].error || videos[leader].ended || time * fps >= end + 0.9) {
        if (looped) seek(begin, true); else stop(end);
        return;
      }
      const since = performance.now();
      lag = Math.max((since - looked) / 1000, 0.9 * lag);
      looked = since;
      const running = clips.map((_, k) => k).filter((k) => !videos[k].error && !over(k, time));
      const slowest = Math.min(...running.map(clock));
      const apart = Math.max(...running.map((k) => (clock(k) - slowest) * rates[k] * clips[k].fps));
      pace = apart > 0.5 ? Math.max(0.05, 0.7 * pace) : Math.min(1, 1.3 * pace, 0.9 / (lag * rate * Math.max(...clips.map((clip) => clip.fps))));
      clips.forEach((clip, k) => {
        const video = videos[k];
        if (!running.includes(k)) {
          if (!video.paused && k !== leader) { video.pause(); video.currentTime = place(k, time); }
          return;
        }
        const ahead = (clock(k) - slowest) * rates[k] * clip.fps > AHEAD;
        setRate(k, ahead ? CRAWL : pace * rate * rates[k]);
        if (video.paused && !video.ended) video.play().catch(() => {}); // one that has ended would begin again
      });
      tell();
      requestAnimationFrame(watch);
    }

    // ---- what can be asked of it -----------------------------------------------------------------

    function stop(frame) { // and rest, all of them on one and the same frame
      const from = frame === undefined ? now() : frame;
      playing = false;
      show();
      say("state", false);
      return seek(from, false);
    }
    function play() {
      if (playing) return Promise.resolve(true);
      const [begin, end] = stretch();
      return seek(wanted >= end || wanted < begin ? begin : wanted, true);
    }
    function toggle() { return playing ? stop() : play(); }
    function step(by) { return stop(clamp(now() + by)); }
    function speed(value) {
      rate = Math.max(0.0625, Math.min(4, value));
      if (![...speeds.options].some((option) => option.value === String(rate))) speeds.append(make("option", { value: String(rate) }, rate + "×"));
      show();
    }
    function loop(value) { looped = value; show(); }
    function pair(a, b) { wiped = [a, b]; wipe(cut); }
    function wipe(share) {
      if (videos.length < 2) return;
      cut = share;
      grid.classList.toggle("rp-wiped", cut !== null);
      names.hidden = cut === null || !wiped.some((k) => clips[k].title);
      wiper.hidden = cut === null;
      wiped.forEach((k, side) => { names.children[side].textContent = names.children[side].title = (side ? "right: " : "left: ") + clips[k].title; });
      if (cut !== null) wiper.value = String(Math.round(cut * 1000));
      cells.forEach((cell, k) => {
        cell.classList.toggle("rp-a", k === wiped[0]);
        cell.classList.toggle("rp-b", k === wiped[1]);
        cell.style.clipPath = cut === null || k !== wiped[0] ? "" : "inset(0 " + (100 * (1 - cut)).toFixed(2) + "% 0 0)";
      });
      show();
    }
    const nextSpeed = (by) => {
      const near = SPEEDS.reduce((best, value) => (Math.abs(value - rate) < Math.abs(best - rate) ? value : best));
      speed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(near) + by))]);
    };

    const keys = {
      " ": toggle, ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => stop(0), End: () => stop(frames - 1),
      "[": () => nextSpeed(-1), "]": () => nextSpeed(1), l: () => loop(!looped), w: () => wipe(cut === null ? 0.5 : null),
    };
    const far = { ArrowLeft: () => step(-10), ArrowRight: () => step(10) };
    function pressed(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const at = event.target instanceof Element ? event.target : document.body;
      if (at.closest("textarea, select, input:not([type=range]):not([type=radio]):not([type=checkbox])")) return;
      if (event.key === " " && at.closest("button, summary, a, input[type=checkbox]")) return; // they have a use for it
      const does = (event.shiftKey && far[event.key]) || keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!does) return;
      event.preventDefault();
      does();
    }
    if (settings.keys) settings.keys.addEventListener("keydown", pressed);

    const api = {
      play, pause: () => stop(), toggle, step, seek: (frame) => seek(frame), speed, loop, wipe, pair, marks, skew, videos, cells, frames,
      get frame() { return now(); },
      get playing() { return playing; },
      get rate() { return rate; },
      on(name, listener) { listeners[name].push(listener); return api; },
      destroy() {
        gone = true;
        playing = false;
        if (settings.keys) settings.keys.removeEventListener("keydown", pressed);
        videos.forEach((video) => { video.pause(); video.removeAttribute("src"); video.load(); });
        root.replaceChildren();
        root.classList.remove("rp");
      },
    };
    marks(settings.marks);
    speed(rate);
    tell();
    seek(0, false).then(() => say("ready", api));
    return api;
  }

  return { create };
})();
