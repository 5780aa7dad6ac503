export type Row = ArrayLike<number> | Record<string, unknown>;
export interface Numbers { mean: number; sd: number; newSd: number }
export interface NamedNumbers extends Numbers { name: string }
export interface Curve { lower: number; upper: number }
export interface Labels { label: string; probabilities: number[] }
export type Prediction =
  | Numbers
  | NamedNumbers[]
  | Labels
  | ({ median: number } & Curve)
  | ({ rate: number } & Curve)
  | ({ value: number } & Curve)[]
  | { mean: number; sd: number };

export interface Release {
  /** "one output", "regression of several outputs", "statistics" or "histogram". */
  readonly kind: string;
  /** "numbers", "counts", "quantiles" or "classes". */
  readonly outputs: string;
  readonly outputNames: string[];
  /** The columns of a row that is given by names; `inputNames` are the numbers that they become. */
  readonly columns: string[];
  readonly inputNames: string[];
  readonly classes: string[] | null;
  readonly quantiles: number[] | null;
  readonly bounds: [number, number] | null;
  /** True if noise came from a fixed seed: such a release is not private. */
  readonly insecure: boolean;
  /** Null where a row lacks an input without which there is no prediction. */
  predict(row: Row): Prediction | null;
  /** What holds one new output with this probability. */
  interval(row: Row, coverage?: number, options?: { exposure?: number }): [number, number] | null;
  /** How probable it is that one new output lies above a threshold. */
  above(row: Row, threshold: number, options?: { exposure?: number }): number | null;
}

/** Read a release from the bytes of its file. What cannot be told here is refused by name. */
export function readRelease(content: Uint8Array | ArrayBuffer): Promise<Release>;
