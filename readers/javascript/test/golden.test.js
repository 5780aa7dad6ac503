// Releases of every kind that is kept predict here as they do in Python, or are refused by name.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { readRelease } from "../index.js";

const GOLDEN = new URL("../../../tests/data/golden/", import.meta.url);
const NAMES = readdirSync(GOLDEN).filter((name) => name.endsWith(".cloak")).map((name) => name.slice(0, -6));
const TOLERANCE = 1e-8;
const REFUSED = {
  all_kernels: /the kernel PairwiseKernel cannot be evaluated here: predict in Python/,
  gibbs_kernel: /the kernel GibbsKernel cannot/,
  integral_histogram_gaussian: /the kernel IntegralRBF cannot/,
  integral_histogram_laplace: /the kernel IntegralRBF cannot/,
  public_prediction_by_a_release: /public predictions by a release or rows within it cannot be computed here/,
  public_prediction_by_rows: /public predictions by a release or rows within it cannot/,
};
const content = (name) => readFileSync(new URL(name, GOLDEN));
const expectedOf = (name) => JSON.parse(content(`${name}.json`));

// Equal to a part of the largest entry.
const alike = (found, expected, what) => {
  const [left, right] = [found, expected].map((each) => each.flat(3));
  assert.equal(left.length, right.length, what);
  const size = Math.max(...right.map(Math.abs), 0);
  left.forEach((value, i) => assert.ok(Math.abs(value - right[i]) <= TOLERANCE * size,
    `${what}: ${value} and ${right[i]}`));
};

// What Python calls it, made of what is predicted here.
const FOUND = {
  classes: (release) => release.classes,
  labels: (release, points) => points.map((row) => release.predict(row).label),
  probabilities: (release, points) => points.map((row) => release.predict(row).probabilities),
  mean_probabilities: (release, points) => points.map((row) => release.predict(row).probabilities),
  mean: (release, points) => points.map((row) => each(release.predict(row), "mean", "rate")),
  sd: (release, points) => points.map((row) => each(release.predict(row), "sd")),
  sd_of_new_output: (release, points) => points.map((row) => each(release.predict(row), "newSd")),
  quantiles: (release, points) => points.map((row) => each(release.predict(row), "value")),
  lower: (release, points) => points.map((row) => each(release.predict(row), "lower")),
  upper: (release, points) => points.map((row) => each(release.predict(row), "upper")),
  interval_of_new_output: (release, points) => {
    const ends = points.map((row) => release.interval(row, 0.8));
    return [0, 1].map((end) => ends.map((each) => each[end]));
  },
  quartiles_of_new_output: (release, points) => points.map((row) => release.interval(row, 0.5)),
};
const each = (found, ...names) => (Array.isArray(found) ? found.map((one) => each(one, ...names))
  : found[names.find((name) => name in found)]);
// Of these nothing is said here.
const UNTOLD = ["latent", "covariance", "probabilities_without_privacy_noise"];
const UNTOLD_OF = {
  counts: ["sd", "sd_of_new_output"],
  margins: ["interval_of_new_output"],
};

for (const name of NAMES) {
  if (REFUSED[name]) {
    test(`${name} is refused`, async () => { await assert.rejects(readRelease(content(`${name}.cloak`)), REFUSED[name]); });
    continue;
  }
  test(name, async () => {
    const release = await readRelease(content(`${name}.cloak`)), expected = expectedOf(name);
    const margins = name === "numbers_with_margins";
    const untold = new Set([...UNTOLD, ...(UNTOLD_OF[release.outputs] || []), ...(margins ? UNTOLD_OF.margins : [])]);
    let compared = 0;
    for (const [what, values] of Object.entries(expected.predictions)) {
      if (untold.has(what)) continue;
      const found = FOUND[what](release, expected.points);
      if (["classes", "labels"].includes(what)) assert.deepEqual(found, values);
      else alike(found, values, `${name}, ${what}`);
      compared += 1;
    }
    assert.ok(compared > 0);
    assert.equal(release.insecure, expected.insecure);
    if (margins) assert.throws(() => release.interval(expected.points[0]), /margins of rows .* cannot be told here/);
  });
}

test("what is refused is kept", () => assert.ok(Object.keys(REFUSED).every((name) => NAMES.includes(name))));
