"use strict";
// Traces values through the panels of a fill, plays its steps, and lights the code of each.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const flow = document.querySelector(".flow");
  const wires = flow.querySelector(".wires");
  const elements = [...flow.querySelectorAll(".panel")];
  const kinds = { s: "stays", l: "lane", a: "across", f: "folds", m: "memory", n: "none" };

  const panels = data.panels.map((panel, number) => {
    const cells = [...elements[number].querySelectorAll("b")];
    const starts = [];
    let total = 0;
    for (const source of panel.sources) { starts.push(total); total += data.panels[source].cells; }
    return { ...panel, element: elements[number], cells, starts, readers: cells.map(() => []) };
  });

  // reads[c] are the cells that c is made of, as [panel, cell].
  for (const [number, panel] of panels.entries()) {
    panel.from = panel.cells.map((_, cell) => {
      const found = [];
      for (const read of [panel.reads[cell] ?? []].flat()) {
        if (read < 0) continue;
        let which = panel.starts.length - 1;
        while (panel.starts[which] > read) which -= 1;
        found.push([panel.sources[which], read - panel.starts[which]]);
      }
      return found;
    });
    panel.from.forEach((list, cell) => list.forEach(([p, c]) => panels[p].readers[c].push([number, cell])));
  }

  const follow = (start, next) => {
    const seen = new Map([[start.join(), start]]), edges = [], queue = [start];
    while (queue.length) {
      const at = queue.shift();
      for (const to of next(at)) {
        edges.push([at, to]);
        if (!seen.has(to.join())) { seen.set(to.join(), to); queue.push(to); }
      }
    }
    seen.delete(start.join());
    return { cells: [...seen.values()], edges };
  };
  const back = (at) => follow(at, ([p, c]) => panels[p].from[c]);
  const forward = (at) => follow(at, ([p, c]) => panels[p].readers[c]);

  const rowName = (panel, cell) => panel.rows[Math.floor(cell / panel.columns)];
  const nameOf = ([p, c]) => {
    const panel = panels[p];
    if (panel.kind === "goal")
      return `goal cell ${rowName(panel, c)}, ${c % panel.columns}`;
    if (panel.kind === "registers")
      return `${panel.name}, ${data.row} ${rowName(panel, c)}, register ${c % panel.columns}`;
    const what = panel.kind === "array" ? "" : panel.kind === "memory" ? "memory " : "stored to ";
    return `${what}${panel.name}[${c}]`;
  };
  const listed = (cells) => {
    const shown = cells.slice(0, 12).map(([p, c]) => `${panels[p].name}[${c}]`);
    return shown.join(", ") + (cells.length > 12 ? `, … (${cells.length})` : "");
  };

  // -- wires -------------------------------------------------------------------------------------
  const box = (p, c) => {
    const own = panels[p].cells[c].getBoundingClientRect(), all = flow.getBoundingClientRect();
    return { l: own.left - all.left, r: own.right - all.left, y: (own.top + own.bottom) / 2 - all.top };
  };
  const wire = (from, to, style, far) => {
    const a = box(...from), b = box(...to);
    const beside = b.l >= a.r;
    if (!far && panels[from[0]].element.offsetTop !== panels[to[0]].element.offsetTop) return "";
    const x1 = beside ? a.r : (a.l + a.r) / 2, x2 = beside ? b.l : (b.l + b.r) / 2;
    const bend = Math.max(14, Math.abs(x2 - x1) / 2);
    const d = beside ? `M${x1} ${a.y}C${x1 + bend} ${a.y} ${x2 - bend} ${b.y} ${x2} ${b.y}`
                     : `M${x1} ${a.y}L${x2} ${b.y}`;
    return `<path class="${style}" d="${d}"/>`;
  };
  const MOST = 600, FEW = 16; // more wires than that are a felt

  // -- tracing -----------------------------------------------------------------------------------
  const said = document.getElementById("trace");
  const resting = said.innerHTML;
  let traced = [], pinned = null, step = 0;

  const clear = () => {
    for (const cell of traced) cell.classList.remove("back", "fwd", "here");
    traced = [];
    flow.classList.remove("tracing");
    delete flow.dataset.at;
    said.innerHTML = resting;
    drawStep();
  };
  const mark = (cells, name) => {
    for (const [p, c] of cells) { panels[p].cells[c].classList.add(name); traced.push(panels[p].cells[c]); }
  };
  const trace = (p, c) => {
    if (flow.dataset.at === `${p},${c}`) return;
    for (const cell of traced) cell.classList.remove("back", "fwd", "here");
    traced = [];
    flow.classList.add("tracing");
    flow.dataset.at = `${p},${c}`;
    const before = back([p, c]), after = forward([p, c]);
    mark(before.cells, "back");
    mark(after.cells, "fwd");
    mark([[p, c]], "here");
    const all = [...before.edges.map(([to, from]) => [from, to]), ...after.edges];
    const few = all.length <= FEW; // between rows of panels only where they can be told apart
    const drawn = panels[p].told && !few ? [] : all.slice(0, MOST);
    wires.innerHTML = drawn.map(([from, to]) => wire(from, to, "", few)).join("");
    tell([p, c], before.cells, after.cells);
  };
  const tell = (at, before, after) => {
    const roots = before.filter(([p]) => panels[p].kind === "memory");
    const ends = after.filter(([p]) => panels[p].kind === "output");
    const own = panels[at[0]].kind;
    const holds = own === "memory" ? `${listed([at])}` : roots.length ? listed(roots) : "a constant";
    const verb = roots.length > 1 ? "made of" : "holds";
    const lines = [];
    const stage = (p, cells, where) => {
      const mine = cells.filter((cell) => cell[0] === p);
      if (mine.length === 1) lines.push([nameOf(mine[0]), where]);
      else if (mine.length) lines.push([`${panels[p].name}: ${mine.length} cells`, where]);
    };
    panels.forEach((_, p) => {
      if (p === at[0]) lines.push([nameOf(at), "here"]);
      stage(p, before, "back");
      if (p !== at[0]) stage(p, after, "fwd");
    });
    said.innerHTML = "";
    if (panels[at[0]].told) {
      said.appendChild(document.createElement("h3")).textContent = nameOf(at);
      said.appendChild(document.createElement("p")).textContent = panels[at[0]].told[at[1]];
      return;
    }
    const head = said.appendChild(document.createElement("h3"));
    head.textContent = nameOf(at);
    const what = said.appendChild(document.createElement("p"));
    what.textContent = `${own === "memory" ? "is" : verb} ${holds}` +
      (own === "output" ? "" : ends.length ? `; ends in ${listed(ends)}` : "; reaches no output");
    const list = said.appendChild(document.createElement("ol"));
    list.className = "path";
    for (const [text, where] of lines) {
      const line = list.appendChild(document.createElement("li"));
      line.textContent = text;
      line.className = where;
    }
  };

  // -- keyboard and pointer ------------------------------------------------------------------------
  let current = [0, 0];
  const place = (p, c) => {
    panels[current[0]].cells[current[1]].tabIndex = -1;
    current = [p, c];
    const cell = panels[p].cells[c];
    cell.tabIndex = 0;
    return cell;
  };
  const clamp = (value, most) => Math.max(0, Math.min(most, value));
  const moved = (p, c, key) => {
    const panel = panels[p], last = panel.cells.length - 1, n = panel.columns;
    const row = Math.floor(c / n);
    switch (key) {
      case "ArrowUp": return c - n >= 0 ? [p, c - n] : [p, c];
      case "ArrowDown": return c + n <= last ? [p, c + n] : [p, c];
      case "ArrowLeft": return c % n ? [p, c - 1] : p ? [p - 1, sameRow(p - 1, row, "end")] : [p, c];
      case "ArrowRight": return c % n < n - 1 && c < last ? [p, c + 1]
        : p < panels.length - 1 ? [p + 1, sameRow(p + 1, row, "start")] : [p, c];
      case "Home": return [p, row * n];
      case "End": return [p, clamp(row * n + n - 1, last)];
      case "PageUp": return [clamp(p - 1, p), clamp(c, panels[clamp(p - 1, p)].cells.length - 1)];
      case "PageDown": {
        const to = clamp(p + 1, panels.length - 1);
        return [to, clamp(c, panels[to].cells.length - 1)];
      }
      default: return null;
    }
  };
  const sameRow = (p, row, side) => {
    const n = panels[p].columns, rows = Math.ceil(panels[p].cells.length / n);
    const own = clamp(row, rows - 1) * n;
    return clamp(side === "end" ? own + n - 1 : own, panels[p].cells.length - 1);
  };
  panels.forEach((panel, p) => panel.cells.forEach((cell, c) => {
    cell.setAttribute("role", "gridcell");
    cell.tabIndex = -1;
    cell.at = [p, c];
  }));
  place(0, 0);
  flow.addEventListener("focusin", (event) => {
    const at = event.target.at;
    if (!at) return;
    place(...at);
    event.target.setAttribute("aria-label", nameOf(at));
    pinned = at;
    trace(...at);
  });
  flow.addEventListener("focusout", (event) => {
    if (event.relatedTarget && flow.contains(event.relatedTarget)) return;
    pinned = null;
    clear();
  });
  // When the keyboard scrolls the page, cells pass under a pointer that rests: that is no pointing.
  let rested = "";
  const pointed = (event) => {
    const at = `${event.clientX},${event.clientY}`, fresh = at !== rested;
    rested = at;
    return fresh;
  };
  flow.addEventListener("pointerover", (event) => { if (pointed(event) && event.target.at) trace(...event.target.at); });
  flow.addEventListener("pointerleave", (event) => {
    if (!pointed(event)) return;
    if (pinned) trace(...pinned); else clear();
  });
  flow.addEventListener("click", (event) => { if (event.target.at) event.target.focus(); });
  flow.addEventListener("keydown", (event) => {
    const at = event.target.at;
    if (!at) return;
    if (event.key === "Escape") { event.target.blur(); return; }
    const to = moved(...at, event.key);
    if (!to) return;
    event.preventDefault();
    place(...to).focus();
  });

  // -- steps ---------------------------------------------------------------------------------------
  let chosen = false;
  const drawStep = () => {
    const panel = panels[step];
    if (!panel.moves || !chosen) { wires.innerHTML = ""; return; }
    const edges = [];
    panel.from.forEach((list, cell) => list.forEach((from) => edges.push([from, [step, cell], kinds[panel.moves[cell]]])));
    wires.innerHTML = edges.length > MOST ? "" :
      edges.map(([from, to, kind]) => wire(from, to, `faint ${kind}`, false)).join("");
  };
  const range = document.getElementById("step");
  if (range) steps(range);
  function steps(range) {
    const label = document.getElementById("now");
    const about = document.getElementById("about"), code = document.getElementById("code");
    const show = (number, byHand) => {
      step = number;
      chosen = chosen || byHand;
      range.value = number;
      panels.forEach((panel, p) => panel.element.classList.toggle("now", chosen && p === number));
      const panel = panels[number];
      label.textContent = `${number + 1} of ${panels.length}: ${panel.name}`;
      about.querySelector("h3").textContent = panel.title;
      about.querySelector("p").textContent = panel.says;
      about.querySelector("code").textContent = panel.index || "";
      let first = null;
      if (code) for (const line of code.children) {
        const lit = chosen && line.dataset.p === String(number);
        line.classList.toggle("lit", lit);
        if (lit && !first) first = line;
      }
      if (first) {
        const scroller = code.parentElement;
        const top = first.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
        scroller.scrollTop += top - scroller.clientHeight / 4;
      }
      if (!flow.dataset.at) drawStep();
    };
    range.max = panels.length - 1;
    range.addEventListener("input", () => { stop(); show(Number(range.value), true); });
    let timer = null;
    const play = document.getElementById("play");
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); };
    play.addEventListener("click", () => {
      if (timer) { stop(); return; }
      play.textContent = "Pause";
      play.setAttribute("aria-pressed", "true");
      show(chosen && step < panels.length - 1 ? step + 1 : 0, true);
      timer = setInterval(() => { if (step === panels.length - 1) stop(); else show(step + 1, true); }, 1400);
    });
    const by = (delta) => () => { stop(); show(chosen ? clamp(step + delta, panels.length - 1) : 0, true); };
    document.getElementById("before").addEventListener("click", by(-1));
    document.getElementById("after").addEventListener("click", by(1));
    show(0, false);
  }

  // -- colours ---------------------------------------------------------------------------------------
  const modes = [...document.querySelectorAll("button[data-mode]")];
  const legends = [...document.querySelectorAll(".legend[data-mode]")];
  const colour = (mode) => {
    modes.forEach((each) => each.setAttribute("aria-pressed", String(each.dataset.mode === mode)));
    legends.forEach((each) => { each.hidden = each.dataset.mode !== mode; });
    for (const panel of panels) panel.cells.forEach((cell, c) => {
      if (!cell.dataset.k) { cell.dataset.k = cell.classList[0]; cell.dataset.t = cell.textContent; }
      const moved = mode === "moves" && panel.sources.length;
      const name = moved ? kinds[panel.moves[c]] : cell.dataset.k;
      cell.classList.remove(cell.dataset.c || cell.dataset.k);
      cell.classList.add(name);
      cell.dataset.c = name;
      cell.textContent = moved ? source(panel, c) : cell.dataset.t;
    });
  };
  const source = (panel, c) => {
    const from = panel.from[c][0], move = panel.moves[c];
    if (!from || move === "n") return "0";
    if (move === "s") return "·";
    if (move === "f") return panel.cells[c].dataset.t;
    const own = panels[from[0]];
    if (own.kind === "registers" && move === "a") return rowName(own, from[1]);
    return own.kind === "registers" ? `r${from[1] % own.columns}` : String(from[1]);
  };
  modes.forEach((each) => each.addEventListener("click", () => colour(each.dataset.mode)));

  let waiting = false;
  addEventListener("resize", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const at = flow.dataset.at;
      if (!at) { drawStep(); return; }
      delete flow.dataset.at;
      trace(...at.split(",").map(Number));
    });
  });
  document.documentElement.dataset.ready = "yes";
})();
