"use strict";
/* The site works without this file but for single runs. It sorts boards. All text goes into the page as text, never as HTML. */
(function () {
  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function board(table) {
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...table.querySelectorAll("tr.row")];

    /* What a row is sorted by: a number, a text, or nothing, which comes last in either direction. */
    function key(row, place) {
      const cell = row.cells[place];
      const text = cell.dataset.order ?? cell.textContent.trim();
      return text === "" || !cell.classList.contains("number") ? text : Number(text);
    }
    function sort(head, place) {
      const before = head.getAttribute("aria-sort");
      const descending = before ? before === "ascending" : head.dataset.sort !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      rows.sort((a, b) => {
        const [one, two] = [key(a, place), key(b, place)];
        if (one === "" || two === "") return (one === "") - (two === "");
        return (descending ? -1 : 1) * (one < two ? -1 : one > two ? 1 : 0);
      });
      for (const row of rows) row.parentElement.append(row);
    }
    heads.forEach((head, place) => {
      if (!head.classList.contains("number") && !head.dataset.sort) return;
      const button = element("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(head, place));
    });
  }

  let loaded = null;
  window.benchRuns = function (packed) {
    const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
    loaded = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  };

  const fixed = (value, digits) => (value === null ? "–" : Number(value).toFixed(digits));

  function table(label, heads, rows) {
    const cell = (value, place) => element(place ? "td" : "th", place ? { class: "number" } : { scope: "row" }, String(value));
    const head = (text, place) => element("th", { scope: "col", ...(place ? { class: "number" } : {}) }, text);
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      element("table", {}, element("thead", {}, element("tr", {}, ...heads.map(head))),
        element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell))))));
  }

  function facts(pairs) {
    return element("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== "")
      .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  }

  /* Accuracy in percent by split, stage and rule; first those that a board shows which the run stands in. */
  function results({ results, boards }) {
    const shown = ([split, stage, rule]) => split === "test" && boards.some((board) => board.stage === stage && board.rule === rule);
    return [...results].sort((a, b) => shown(b) - shown(a)).map((row) => {
      const [split, stage, rule, ...numbers] = row;
      return [(shown(row) ? "✓ " : "") + [stage, split === "val" ? "validation" : split, rule].join(", "), ...numbers.map((value) => fixed(value, 2))];
    });
  }

  function origin({ bundle, bundle_state, origin }) {
    if (bundle) return "bundle " + bundle + ": " + bundle_state;
    return origin ? "shipped: " + origin : "own";
  }

  function show(hash, run) {
    const root = document.body.dataset.root;
    const { spec } = run;
    const title = run.title + ": " + spec.dataset + ", " + spec.scenario + ", " + spec.clients + " clients, seed " + spec.seed;
    const link = (address, text) => element("a", { href: root + address }, text);
    const boards = element("div", {}, ...run.boards.map((board) => element("div", {}, link(board.address, board.title))));
    const numbers = results(run);
    document.title = title + " · bench leaderboard";
    document.getElementById("run").replaceChildren(
      element("p", { class: "path" }, run.page ? link(run.page, run.title) : run.title, " / ", link(run.data, spec.dataset)),
      element("h1", {}, title),
      facts([["State", run.state.replace("_", " ")], ["Reason", run.reason], ["Origin", origin(run)], ["Stands on", run.boards.length ? boards : ""]]),
      element("h2", {}, "Make it again"),
      element("pre", { tabindex: "0" }, run.command),
      element("h2", {}, "Results"),
      ...(numbers.length ? [element("p", { class: "note" }, "Accuracy in percent by stage, split and selection rule; ✓: on a board. Std: sample standard deviation over clients."),
        table("Results", ["Stage, split, rule", "Mean over clients", "Mean over samples", "Std", "Lowest"], numbers)]
        : [element("p", {}, "This run has no numbers.")]),
      element("h2", {}, "Costs"),
      table("Costs", ["Of the run", "Value"], [["seconds in all", fixed(run.seconds_total, 2)], ["of these at clients", fixed(run.seconds_client, 2)],
        ["at the server", fixed(run.seconds_server, 2)], ["for evaluation", fixed(run.seconds_evaluation, 2)], ["peak memory, MiB", fixed(run.peak_memory / 2 ** 20, 0)],
        ["megabytes up", fixed(run.bytes_up / 1e6, 3)], ["megabytes down", fixed(run.bytes_down / 1e6, 3)]]),
      element("h2", {}, "Where it comes from"),
      facts([["Spec hash", hash], ["Partition hash", run.partition_hash], ["Started", run.started.replace("T", " ") + " UTC"], ["Device", run.device],
        ["Version", run.code_version], ["Source hash", run.source_hash], ["Numerics", "method " + run.method_numerics + ", engine " + run.engine_numerics]]),
      element("h3", {}, "Spec"),
      element("pre", { tabindex: "0" }, JSON.stringify(spec, null, 1)),
      element("h3", {}, "Environment"),
      element("pre", { tabindex: "0" }, run.environment === null ? "not known" : JSON.stringify(run.environment, null, 1)));
  }

  function runPage() {
    const hash = location.hash.slice(1);
    if (!/^[0-9a-f]{64}$/.test(hash)) return;
    const script = element("script", { src: document.body.dataset.root + "data/runs-" + hash.slice(0, 2) + ".js" });
    const missing = () => document.getElementById("run").replaceChildren(element("h1", {}, "A run"),
      element("p", {}, "No run with the spec hash " + hash + " is in this leaderboard."));
    script.onload = async () => {
      script.remove();
      const runs = await loaded;
      if (location.hash.slice(1) !== hash) return;
      if (Object.hasOwn(runs, hash)) show(hash, runs[hash]);
      else missing();
    };
    script.onerror = missing;
    document.head.append(script);
  }

  const found = document.getElementById("board");
  if (found) board(found);
  if (document.getElementById("run")) {
    window.addEventListener("hashchange", runPage);
    runPage();
  }
})();
