// Predictions from a release file of cloakgp, in Node and in browsers, without dependencies. A Date is a moment, read in UTC:
// new Date("2026-11-02") is that day everywhere, new Date(2026, 10, 2) is not. What a clock shows is given as text.
import { openArchive } from "./archive.js";
import { codesOf, hasCell, sourcesOf, valuesOf } from "./cells.js";
import { columnsOf, featuresOf, predictor } from "./predictor.js";

const OLD = "it was written without what programs in other languages predict by: open it in Python and save it again";

// All that there is among the coefficients: what is not here has a meaning that this reader would miss.
const KNOWN = new Set(["outputs", "inputs", "insecure", "bounds", "transform", "classes", "link", "least", "quantiles", "counts",
  "calibration", "unknown_noise", "margins", "parts", "several"]);
const KNOWN_OF_PARTS = new Set(["weight", "features", "kernel", "centres", "factor", "all_explained", "noise", "scatter", "trend", "scales",
  "overdispersion", "questions", "channels"]);
const checkKnown = (tree, known) => {
  const strange = Object.keys(tree).filter((name) => tree[name] !== null && !known.has(name));
  if (strange.length) throw new Error(`it predicts by ${strange.join(", ")}, which this reader does not know: predict in Python`);
};

const predicting = (manifest, arrays) => {
  const tree = manifest.coefficients;
  if (!tree) throw new Error(OLD);
  if (manifest.predictor || manifest.public_rows)
    throw new Error("public predictions by a release or rows within it cannot be computed here: predict in Python");
  checkKnown(tree, KNOWN);
  tree.parts.forEach((part) => checkKnown(part, KNOWN_OF_PARTS));
  const array = (name) => arrays.get(name);
  const parts = tree.parts.map((part) => ({
    ...part,
    features: featuresOf(part.features, array),
    centres: part.centres && array(part.centres),
    factor: part.factor && array(part.factor),
    questions: part.questions && part.questions.map((blocks) => blocks.map(({ start, matrix, scale }) => ({
      start,
      matrix: array(matrix),
      scale: array(scale),
    }))),
    channels: part.channels.map((channel) => ({
      ...channel,
      weights: array(channel.weights),
      subtracted: array(channel.subtracted),
      added: array(channel.added),
    })),
  }));
  const { calibration } = tree;
  return {
    ...tree,
    parts,
    calibration: calibration && { ...calibration, grid: array(calibration.grid), curves: array(calibration.curves) },
  };
};

// What predicts, of one output or of several; `values` are those of predictor.js.
class Release {
  #columns; #codes; #schema; #found; #tree;

  constructor(manifest, arrays) {
    const tree = predicting(manifest, arrays), names = (manifest.entries || manifest).input_names;
    this.#tree = tree;
    this.#schema = manifest.schema;
    this.#columns = columnsOf(manifest.schema, tree.inputs);
    this.#codes = codesOf(manifest.schema ? manifest.schema.missing_values : []);
    this.#found = predictor({ ...tree, columns: this.#columns });
    this.kind = manifest.kind;
    this.outputs = tree.outputs;
    this.outputNames = tree.several ? tree.several.map((each) => each.name) : [manifest.output_name];
    this.inputNames = names.length ? names.slice(0, tree.inputs)
      : Array.from({ length: tree.inputs }, (_, i) => `x${i + 1}`);
    this.columns = manifest.schema ? this.#columns.flatMap(sourcesOf) : this.inputNames;
    this.classes = tree.classes;
    this.quantiles = tree.quantiles && tree.quantiles.levels;
    this.bounds = tree.several ? null : tree.bounds;
    this.insecure = tree.insecure;
  }

  #values(row) {
    if (!Array.isArray(row) && !ArrayBuffer.isView(row) && this.#schema)
      return valuesOf(this.#columns, this.#codes, row);
    return Float64Array.from(inputsOf(this.inputNames, row));
  }

  predict(row) {
    const values = this.#values(row), found = this.#found;
    if (!values) return null;
    if (this.classes) {
      const probabilities = found.probabilities(values);
      return { label: this.classes[probabilities.indexOf(Math.max(...probabilities))], probabilities };
    }
    if (this.#tree.several) return found.several(values);
    if (this.outputs === "numbers" && !this.#tree.transform) return found.numbers(values);
    const { middle, curve, quantiles } = found.predicted(values, 0.95);
    if (this.quantiles) return quantiles.map((each) => ({ value: each.middle, lower: each.curve[0], upper: each.curve[1] }));
    return { [this.outputs === "counts" ? "rate" : "median"]: middle, lower: curve[0], upper: curve[1] };
  }

  interval(row, coverage = 0.9, { exposure } = {}) {
    this.#checkOne();
    if (this.#tree.margins)
      throw new Error("intervals by margins of rows that were kept out cannot be told here: predict in Python");
    if (!(coverage > 0 && coverage < 1)) throw new Error("a coverage lies between 0 and 1");
    const values = this.#values(row);
    return values && this.#found.predicted(values, coverage, this.#exposure(exposure)).person;
  }

  above(row, threshold, { exposure } = {}) {
    this.#checkOne();
    if (!Number.isFinite(threshold)) throw new Error("a threshold is a finite number");
    const values = this.#values(row);
    return values && this.#found.above(values, threshold, this.#exposure(exposure));
  }

  #exposure(given) {
    if (given === undefined) return 1;
    if (this.outputs !== "counts")
      throw new Error("exposure is of counts, and this release is about other outputs");
    if (!(given > 0 && Number.isFinite(given))) throw new Error("an exposure is positive and finite");
    return given;
  }

  #checkOne() {
    if (this.classes || this.#tree.several)
      throw new Error("intervals, and probabilities above a threshold, are told of releases of one number");
  }
}

// Inputs of a row: numbers in their order, or by their names.
const inputsOf = (names, row) => {
  const listed = Array.isArray(row) || ArrayBuffer.isView(row);
  const missing = listed ? [] : names.filter((name) => !hasCell(row, name));
  if (missing.length) throw new Error(`there is no column ${missing.join(", ")}`);
  const values = listed ? Array.from(row) : names.map((name) => row[name]);
  if (values.length !== names.length || !values.every((each) => typeof each === "number" && Number.isFinite(each)))
    throw new Error(`a row has ${names.length} finite numbers: ${names.join(", ")}`);
  return values;
};

// Noisy means in boxes of a grid; a row outside it belongs to the nearest.
class Histogram {
  #edges; #means; #counts; #noise; #shape;

  constructor(manifest, arrays) {
    this.kind = "histogram";
    this.outputs = "numbers";
    this.outputNames = ["y"];
    this.bounds = manifest.bounds;
    this.insecure = manifest.insecure;
    this.#edges = manifest.bins.edges.map((name) => arrays.get(name).values);
    this.#shape = this.#edges.map((edges) => edges.length - 1);
    this.inputNames = manifest.input_names.length ? manifest.input_names : this.#edges.map((_, i) => `x${i + 1}`);
    this.columns = this.inputNames;
    this.#noise = manifest.noise_sd;
    const [places, counts, sums] = ["places", "counts", "sums"].map((name) => arrays.get(manifest[name]));
    const middle = (manifest.bounds[0] + manifest.bounds[1]) / 2;
    this.#means = new Map();
    this.#counts = new Map();
    for (let i = 0; i < places.rows; i++) {
      const cell = places.values.subarray(i * places.columns, (i + 1) * places.columns).join();
      this.#means.set(cell, middle + sums.values[i] / counts.values[i]);
      this.#counts.set(cell, counts.values[i]);
    }
  }

  predict(row) {
    const cell = inputsOf(this.inputNames, row).map((value, i) => {
      let place = 0;
      while (place < this.#shape[i] - 1 && this.#edges[i][place + 1] <= value) place++;
      return place;
    }).join();
    const [lowest, highest] = this.bounds;
    if (!this.#means.has(cell)) return { mean: (lowest + highest) / 2, sd: (highest - lowest) / Math.sqrt(12) };
    const mean = Math.min(Math.max(this.#means.get(cell), lowest), highest);
    return { mean, sd: this.#noise / this.#counts.get(cell) };
  }
}

/** Read a release from the bytes of its file. What cannot be told here is refused by name. */
export const readRelease = async (content) => {
  const { manifest, arrays } = await openArchive(content);
  if (manifest.kind === "histogram") return new Histogram(manifest, arrays);
  if (["one output", "regression of several outputs", "statistics"].includes(manifest.kind))
    return new Release(manifest, arrays);
  throw new Error(`a release of ${manifest.kind} cannot be read here: predict in Python`);
};
