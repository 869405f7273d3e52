// A page that is served asks now and then whether the run has gone on, and shows itself anew when nobody is watching a scene.
(() => {
  const bar = byId("live"), every = 4000;
  const say = (text, ready) => {
    bar.replaceChildren(text);
    if (ready) bar.append(" ", button("Show", "Show what is new", "", () => location.reload()));
    bar.hidden = !text;
  };
  const idle = () => byId("page").hidden === false && document.activeElement === document.body && !byId("dialog").open;
  async function ask() {
    try {
      const now = await (await fetch("state", { cache: "no-store" })).json();
      const going = now.going ? "The run is going: " + now.done + " of " + now.of + " clips are scored." : "";
      if (now.stamp === data.live.stamp) say(going);
      else if (idle() && scrollY < 400) location.reload();
      else say(going + " There are new results.", true);
    } catch { say("The server is not answering."); }
    setTimeout(ask, every);
  }
  ask();
})();
