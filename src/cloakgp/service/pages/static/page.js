// Script of the pages: without it everything works, with it sliders, answers and progress move.
"use strict";

// Sliders beside numbers: <input type="range" data-of="ID" data-low data-high data-scale="log|linear"
// data-zero>, hidden until here. With data-zero the lowest place stands for 0.
const STEPS = 200;
// Milliseconds after a change in which another may follow, before anything is asked.
const PAUSE = 250;

// Parts of which a better version comes later: <section data-later="ADDRESS">. What comes takes its
// place, and what else comes with an ID that of the element with this ID; a part may come again.
function bringLater(root, signal) {
  root.querySelectorAll("[data-later]").forEach((part) => bringPart(part, signal));
}

async function bringPart(part, signal) {
  const note = part.querySelector(".waiting");
  if (note) note.textContent = "Better figures are on their way …";
  try {
    const answer = await fetch(part.dataset.later, { credentials: "same-origin", signal });
    if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").body;
    if (signal.aborted) return;
    for (const other of found.querySelectorAll("[id]")) {
      document.getElementById(other.id)?.replaceWith(document.adoptNode(other));
    }
    const better = document.adoptNode(found.querySelector("section"));
    part.replaceWith(better);
    if (better.dataset.later) await bringPart(better, signal);
  } catch {
    if (signal.aborted || !note) return;
    delete part.dataset.later;
    note.textContent = "Better figures could not be computed.";
  }
}

function joinSlider(slider) {
  const field = document.getElementById(slider.dataset.of);
  const low = Number(slider.dataset.low);
  const high = Number(slider.dataset.high);
  const log = slider.dataset.scale === "log";
  const zero = "zero" in slider.dataset;
  if (!field || !(high > low)) return;
  slider.min = zero ? -1 : 0;
  slider.max = STEPS;
  slider.step = 1;
  const valueAt = (place) => {
    if (place < 0) return 0;
    const share = place / STEPS;
    const value = log ? low * (high / low) ** share : low + (high - low) * share;
    return Number(slider.dataset.whole ? value.toFixed(0) : value.toPrecision(3));
  };
  const placeOf = (value) => {
    if (zero && !(value > 0)) return -1;
    const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.min(STEPS, Math.max(0, Math.round(STEPS * share)));
  };
  let moving = false;
  const follow = () => {
    // A number has fewer digits than a slider has places: it must not pull the slider back.
    if (moving) return;
    slider.value = placeOf(Number(field.value));
    slider.setAttribute("aria-valuetext", field.value);
  };
  slider.addEventListener("input", () => {
    field.value = valueAt(Number(slider.value));
    slider.setAttribute("aria-valuetext", field.value);
    moving = true;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    moving = false;
  });
  slider.addEventListener("change", (event) => {
    event.stopPropagation();
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
  field.addEventListener("input", follow);
  follow();
  slider.hidden = false;
}

// Forms that are answered beside themselves: <form data-answer="ID" data-from="ADDRESS">; at once where
// the place with that ID has data-ask.
function answerBeside(form) {
  const place = document.getElementById(form.dataset.answer);
  let latest = 0;
  let waiting;
  let asking = new AbortController();
  let wanted = "";
  const later = (milliseconds) => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, milliseconds);
  };
  const ask = async () => {
    const mine = ++latest;
    // The server stops at what nobody waits for.
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const chosen = new URLSearchParams(new FormData(form));
    wanted = String(chosen);
    place.classList.add("busy");
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(`${form.dataset.from}?${chosen}`, {
        credentials: "same-origin", signal,
      });
      if (answer.redirected) {
        location.reload();
        return;
      }
      const text = await answer.text();
      if (mine !== latest) return;
      if (answer.status === 429) {
        later(1000 * Number(answer.headers.get("Retry-After") ?? 1));
      }
      const found = new DOMParser().parseFromString(text, "text/html");
      // Of a page about a problem, what it says; of an answer, all of it.
      const shown = found.querySelector("main") ?? found.body;
      place.replaceChildren(...document.adoptNode(shown).childNodes);
      history.replaceState(null, "", `${location.pathname}?${chosen}`);
      bringLater(place, signal);
    } catch {
      wanted = "";
      if (mine === latest) place.textContent = "The service does not answer. Try again.";
    } finally {
      if (mine === latest) {
        place.classList.remove("busy");
        place.removeAttribute("aria-busy");
      }
    }
  };
  // What can be asked for belongs to the choices that it was made of, and goes with them.
  const outdate = () => {
    const now = String(new URLSearchParams(new FormData(form)));
    // Of one change browsers tell twice.
    if (now === wanted) return;
    wanted = now;
    latest++;
    asking.abort();
    place.querySelectorAll("a.button").forEach((link) => link.remove());
    later(PAUSE);
  };
  form.addEventListener("input", outdate);
  form.addEventListener("change", outdate);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    if (form.reportValidity()) ask();
  });
  wanted = String(new URLSearchParams(new FormData(form)));
  if ("ask" in place.dataset) ask();
  else bringLater(place, asking.signal);
}

// Forms that are answered by a file: <form data-file="NAME" data-remarks="ID">. What there is to say of it
// comes in a header, and is shown in the place with that ID.
function answerByFile(form) {
  const place = document.getElementById(form.dataset.remarks);
  const button = form.querySelector("[type=submit]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = new FormData(form);
    button.disabled = true;
    place.textContent = "Predicting …";
    try {
      const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin" });
      if (answer.redirected) {
        location.reload();
        return;
      }
      if (!answer.ok) {
        const found = new DOMParser().parseFromString(await answer.text(), "text/html");
        const shown = found.querySelector("main") ?? found.body;
        place.replaceChildren(...document.adoptNode(shown).childNodes);
        return;
      }
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await answer.blob());
      link.download = form.dataset.file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      const remarks = JSON.parse(answer.headers.get("Cloakgp-Remarks") ?? "[]");
      place.replaceChildren(...remarks.map((remark) => {
        const note = document.createElement("p");
        note.className = "note";
        note.textContent = `${remark}.`;
        return note;
      }));
    } catch {
      place.textContent = "The service does not answer. Try again.";
    } finally {
      button.disabled = false;
    }
  });
}

// A job that goes on: <section data-job="ADDRESS">, told by server-sent events.
function followJob(section) {
  const source = new EventSource(section.dataset.job);
  const bar = section.querySelector("progress");
  const step = section.querySelector("[data-step]");
  const cancel = section.querySelector("[data-cancel]");
  const NAMES = { queued: "waiting for its turn", running: "preparing", drawing: "drawing noise" };
  source.addEventListener("job", (event) => {
    const job = JSON.parse(event.data);
    if (!(job.state in NAMES)) {
      source.close();
      location.reload();
      return;
    }
    step.textContent = job.step || NAMES[job.state];
    if (job.share === null) bar.removeAttribute("value");
    else bar.value = job.share;
    if (cancel) cancel.hidden = job.state === "drawing";
  });
}

// Fields that matter for some answers alone: <div data-if="NAME" data-is="VALUE">.
function showIf(place) {
  const fields = document.getElementsByName(place.dataset.if);
  const show = () => {
    const chosen = [...fields].find((each) => each.type !== "radio" || each.checked);
    place.hidden = !chosen || !place.dataset.is.split(",").includes(chosen.value);
  };
  fields.forEach((each) => each.addEventListener("change", show));
  show();
}

// Boxes that cannot be ticked while another field has their value: <input data-unless="NAME,NAME">.
function offerUnless(box) {
  const fields = box.dataset.unless.split(",").flatMap((name) => [
    ...document.getElementsByName(name),
  ]);
  const show = () => {
    const taken = fields.some(
      (each) => each.value === box.value && (each.type !== "radio" || each.checked),
    );
    box.disabled = taken;
    if (taken) box.checked = false;
  };
  fields.forEach((each) => each.addEventListener("change", show));
  show();
}

document.querySelectorAll("[data-unless]").forEach(offerUnless);
document.querySelectorAll("input[type=range][data-of]").forEach(joinSlider);
document.querySelectorAll("form[data-answer]").forEach(answerBeside);
if (!document.querySelector("form[data-answer]")) bringLater(document, new AbortController().signal);
document.querySelectorAll("form[data-file]").forEach(answerByFile);
document.querySelectorAll("[data-job]").forEach(followJob);
document.querySelectorAll("[data-if]").forEach(showIf);
document.querySelectorAll("[data-print]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
});
