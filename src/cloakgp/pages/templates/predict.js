// The page: choices, answers, and a picture over one input, by predictor.js.
const Cloak = (() => {
  const release = JSON.parse(document.getElementById("release").textContent);
  const array = (stored) => {
    const text = atob(stored.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const view = new DataView(bytes.buffer);
    const values = new Float64Array(bytes.length / 8);
    for (let i = 0; i < values.length; i++) values[i] = view.getFloat64(8 * i, true);
    return { values, rows: stored.shape[0], columns: stored.shape[1] };
  };
  for (const part of release.parts) {
    part.features = featuresOf(part.features, array);
    if (part.centres) part.centres = array(part.centres);
    if (part.factor) part.factor = array(part.factor);
    for (const channel of part.channels)
      for (const name of ["weights", "subtracted", "added"]) channel[name] = array(channel[name]);
  }
  if (release.calibration)
    for (const name of ["grid", "curves"]) release.calibration[name] = array(release.calibration[name]);
  release.columns = columnsOf(release.schema, release.controls.length);
  return predictor(release);
})();
globalThis.Cloak = Cloak;

(() => {
  const { release } = Cloak, POINTS = 81, DAY = 86400000;
  const colours = ["#1f6f8b", "#d1772e", "#7a5195", "#58913f", "#b3261e", "#7b8794", "#0f4c5c", "#c9a227"];
  const values = release.controls.map((control) => control.typical);
  const find = (id) => document.getElementById(id);
  let over = 0, percent = release.classes ? 0 : Number(find("coverage").value), threshold = null, exposure = 1;

  // As many as the language allows.
  const MOST_DIGITS = 100;
  const digits = (span) => Math.min(MOST_DIGITS, Math.max(0, 2 - Math.floor(Math.log10(span))));
  const number = (value, span, style) =>
    value.toLocaleString("en", { maximumFractionDigits: digits(span), ...style });
  // What is 0 tells nothing of digits: a constant input, or limits that are both at a bound.
  const least = (sizes) => Math.min(...sizes.filter((size) => size > 0), Number.MAX_VALUE);
  // Digits of an input: six at least, and more where its range is narrow.
  const fineness = (control, value) => least([control.hi - control.lo, Math.abs(value) / 1000]);
  const iso = (days, byTime) => new Date(Math.round(days * DAY)).toISOString().slice(0, byTime ? 16 : 10);
  const shown = (control, value) => {
    if (control.kind === "level") return control.levels[value];
    if (control.kind === "date") return iso(value, control.byTime).replace("T", " ");
    const text = control.whole ? String(Math.round(value)) : number(value, fineness(control, value));
    return control.unit ? `${text} ${control.unit}` : text;
  };
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const middle = release.counts ? "rate" : release.transform ? "median" : "average";
  // Digits go by how sure a prediction is: bounds may be a thousand times as wide.
  const width = ([low, high]) => high - low;
  const spanOf = (found) => least((found.quantiles ? found.quantiles.map((each) => each.curve)
    : [found.curve, found.person, ...(release.counts ? [] : [release.bounds])]).map(width));
  const percents = release.quantiles ? release.quantiles.levels.map((level) => Number((100 * level).toPrecision(6))) : [];

  // Of fields: what is wrong with what was typed last. A group of three digits after a comma is thousands
  // to some and decimals to others, and not guessed: pages separate thousands by commas themselves.
  const complaints = new Map();
  const typedIn = (field, label) => {
    const text = field.value.trim(), plain = text.replace(",", "."), value = text ? Number(plain) : NaN;
    const twofold = /^[+-]?[1-9]\d{0,2},\d{3}$/.test(text), fine = Number.isFinite(value) && !twofold;
    field.setAttribute("aria-invalid", String(!fine));
    complaints.delete(field);
    if (twofold) complaints.set(field, `${label}: ${text} may be ${text.replace(",", "")} or ${plain}, write one of these.`);
    return fine ? value : null;
  };

  const chosenIn = (field, label) => {
    const value = typedIn(field, label);
    if (!field.value.trim()) field.removeAttribute("aria-invalid");
    return value;
  };

  // What is typed may lie where nothing was asked.
  const outside = () => release.controls.flatMap((control, i) =>
    control.kind === "number" && (values[i] < control.lo || values[i] > control.hi)
      ? [`${control.label} is outside ${shown(control, control.lo)} to ${shown(control, control.hi)}. `
        + (release.clipped ? "It is taken as at the nearest end." : "Nothing was asked there: the further away, "
          + "the more the prediction rests on the prior alone.")] : []).join(" ");
  const tell = () => {
    find("outside").textContent = [...complaints.values(), outside()].filter(Boolean).join(" ");
    if (release.classes) {
      const shares = Cloak.probabilities(values);
      const best = shares.indexOf(Math.max(...shares));
      find("prediction").textContent = release.classes[best];
      find("curve").textContent = release.classes
        .map((name, i) => `${name}: ${(100 * shares[i]).toFixed(1)} %`).join("   ");
      find("person").textContent = "";
      return;
    }
    const found = Cloak.predicted(values, percent / 100, exposure), span = spanOf(found);
    const text = (ends) => ends.map((end) => number(end, span)).join(" to ");
    find("prediction").textContent = number(found.middle, span);
    find("curve").textContent = found.quantiles
      ? found.quantiles.map((each, k) => `${percents[k]} % of such people are at most `
        + `${number(each.middle, span)}: from ${text(each.curve)}, with 95 %.`).join("\n")
      : `The ${middle} of such people lies in ${text(found.curve)}, with 95 %.`;
    find("person").textContent = `One such person lies in ${text(found.person)}, with ${percent} %.`;
    find("beyond").textContent = threshold === null ? ""
      : `One such person is above ${threshold} with ${(100 * Cloak.above(values, threshold, exposure)).toFixed(1)} %.`;
  };

  const grid = (control) => {
    if (control.kind === "level") return control.levels.map((_, i) => i);
    let step = (control.hi - control.lo) / (POINTS - 1), start = control.lo;
    // Over many weeks always the same day of the week, as of the choice.
    if (control.kind === "date" && step >= 1) {
      step = 7 * Math.ceil(step / 7);
      const offset = values[over] - control.lo;
      start += offset - step * Math.floor(offset / step);
    }
    const found = [];
    for (let value = start; value <= control.hi + 1e-9 * (control.hi - control.lo || 1); value += step) {
      found.push(value);
      if (!step) break;
    }
    return found;
  };

  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const draw = () => {
    const control = release.controls[over], points = grid(control), level = control.kind === "level";
    const at = (value) => values.map((own, i) => (i === over ? value : own));
    // Levels by their places: Plotly loses some names among categories, as "constructor".
    const across = (list) => (control.kind === "date" ? list.map((value) => iso(value, true)) : list);
    const xs = across(points), traces = [];
    const names = level ? control.levels.map(escaped) : [];
    const mark = level ? { mode: "markers", marker: { size: 11 }, text: names, hovertemplate: "(%{text}, %{y})" }
      : { mode: "lines" };
    // As many names as there is room for.
    const every = Math.ceil((16 * names.length) / find("picture").clientWidth);
    const labelled = points.filter((place) => place % every === 0);
    if (release.classes) {
      const found = points.map((value) => Cloak.probabilities(at(value)));
      release.classes.forEach((name, i) => {
        if (release.classes.length === 2 && i === 0) return;
        const colour = colours[i % colours.length];
        traces.push({ x: xs, y: found.map((shares) => shares[i]), name: escaped(name), ...mark,
          line: { color: colour, width: 3 }, marker: { color: colour, size: 11 } });
      });
    } else {
      const found = points.map((value) => Cloak.predicted(at(value), percent / 100, exposure));
      const band = (name, ends, fillcolor) => {
        const low = ends.map((end) => end[0]), high = ends.map((end) => end[1]);
        if (level) traces.push({ type: "bar", x: xs, y: high.map((end, i) => end - low[i]), base: low,
          name, marker: { color: fillcolor }, width: 0.5, hoverinfo: "skip" });
        else traces.push({ x: [...xs, ...xs.slice().reverse()], y: [...high, ...low.slice().reverse()],
          fill: "toself", fillcolor, line: { width: 0 }, mode: "lines", name, hoverinfo: "skip" });
      };
      const line = (name, y, color) =>
        traces.push({ x: xs, y, name, ...mark, line: { color, width: 3 }, marker: { color, size: 11 } });
      band(`one person, ${percent} %`, found.map((each) => each.person), "rgba(90,169,196,.2)");
      if (release.quantiles) percents.forEach((share, k) => {
        const colour = colours[k % colours.length], own = found.map((each) => each.quantiles[k]);
        band(`${share} %, its 95 %`, own.map((each) => each.curve), `${colour}40`);
        line(`${share} %`, own.map((each) => each.middle), colour);
      });
      else {
        band(`${middle}, 95 %`, found.map((each) => each.curve), "rgba(90,169,196,.5)");
        line("prediction", found.map((each) => each.middle), colourOf("--accent"));
      }
    }
    const chosen = across([values[over]])[0];
    const label = escaped(control.label) + (control.unit ? ` (${escaped(control.unit)})` : "");
    Plotly.react("picture", traces, {
      margin: { l: 60, r: 15, t: 45, b: 50 }, barmode: "overlay", hovermode: level ? "closest" : "x",
      font: { family: "system-ui, sans-serif", color: colourOf("--ink"), size: 13 },
      paper_bgcolor: "transparent", plot_bgcolor: "transparent",
      xaxis: { title: { text: label }, type: control.kind === "date" ? "date" : "linear",
        ...(level && { range: [-0.5, names.length - 0.5], tickvals: labelled, ticktext: labelled.map((place) => names[place]) }),
        automargin: true, zeroline: false, showgrid: false },
      yaxis: { title: { text: release.classes ? "probability" : escaped(release.output) }, automargin: true,
        type: release.quantiles && release.transform === "log" ? "log" : "linear",
        zeroline: false, gridcolor: colourOf("--line"), range: release.classes ? [-0.03, 1.03] : undefined },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 12 } },
      shapes: [{ type: "line", x0: chosen, x1: chosen, y0: 0, y1: 1, yref: "paper",
        line: { color: "#7b8794", width: 1.5, dash: "dot" } }],
    }, { responsive: true, displayModeBar: false });
  };

  let waiting = false;
  const update = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; tell(); draw(); });
  };
  release.controls.forEach((control, i) => {
    const input = find(`input-${i}`), typed = find(`value-${i}`);
    const say = () => {
      if (typed) typed.value = number(values[i], fineness(control, values[i]), { useGrouping: false });
    };
    if (control.kind === "level") {
      control.levels.forEach((level, place) => input.add(new Option(level, place)));
      input.value = String(control.typical);
    } else if (control.kind === "date") {
      input.min = iso(control.lo, control.byTime);
      input.max = iso(control.hi, control.byTime);
      input.value = iso(control.typical, control.byTime);
    } else {
      input.min = control.lo;
      input.max = control.hi;
      input.step = control.whole ? 1 : "any";
      input.value = control.typical;
    }
    values[i] = control.kind === "date" ? Date.parse(`${input.value}Z`.replace(/^(.{10})Z/, "$1")) / DAY
      : control.typical;
    input.addEventListener("input", () => {
      const value = control.kind === "date"
        ? Date.parse(`${input.value}Z`.replace(/^(.{10})Z/, "$1")) / DAY : Number(input.value);
      if (!Number.isFinite(value)) return;
      values[i] = value;
      complaints.delete(typed);
      say();
      update();
    });
    if (typed) {
      typed.addEventListener("input", () => {
        const value = typedIn(typed, control.label);
        if (value !== null) {
          values[i] = value;
          input.value = value;
        }
        update();
      });
      // What was typed stays as it was, but for what is no number.
      typed.addEventListener("change", () => {
        if (typed.getAttribute("aria-invalid") === "true") say();
        typed.removeAttribute("aria-invalid");
      });
    }
    say();
    find("over").add(new Option(control.label, i));
  });
  if (!release.classes) {
    find("coverage").addEventListener("input", (event) => { percent = Number(event.target.value); update(); });
    find("above").addEventListener("input", (event) => { threshold = chosenIn(event.target, "threshold"); update(); });
  }
  if (release.counts) {
    find("exposure").addEventListener("input", (event) => {
      const number = chosenIn(event.target, "exposure");
      if (number > 0) exposure = number;
      else if (!event.target.value.trim()) exposure = 1;
      update();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  find("over").addEventListener("input", (event) => { over = Number(event.target.value); update(); });
  update();
})();
