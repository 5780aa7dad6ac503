// Cells of a table as values: numbers, places of levels, days, degrees; NaN where one is missing. As
// cloakgp.columns reads them, each cell on its own; what cannot be read here alike is refused by name.
const DAY = 86400000;
// Text in digits, and what else is a number, or missing, among numbers: see cloakgp/privacy/entries.py.
const DIGITS = "[+-]?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?";
const NUMBER = new RegExp(`^[ \\t]*(?:${DIGITS}|"[ \\t]*${DIGITS}[ \\t]*")[ \\t]*$`);
const WORDS = new Map([["true", 1], ["false", 0],
  ...["inf", "infinity"].flatMap((word) => [[word, Infinity], [`+${word}`, Infinity], [`-${word}`, -Infinity]])]);
const EMPTY = new Set(["", "NULL", "NaN", "None", "nan", "null", "-NaN", "-nan", "NA", "N/A", "n/a", "#N/A", "#NA",
  "#N/A N/A", "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"]);
// What Python takes for blanks; `trim` takes others.
const BLANKS = "[\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const AROUND = new RegExp(`^${BLANKS}|${BLANKS}$`, "g");
const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?$/;
// Of patterns of dates, as Python's strptime reads them.
const FIELDS = { Y: "\\d{4}", m: "1[0-2]|0[1-9]|[1-9]", d: "3[01]|[12]\\d|0[1-9]|[1-9]| [1-9]", H: "2[0-3]|[01]\\d|\\d",
  M: "[0-5]\\d|\\d", S: "6[01]|[0-5]\\d|\\d", f: "\\d{1,6}",
  y: "\\d\\d", I: "1[0-2]|0[1-9]|[1-9]", p: "am|pm" };
// Fields that say the same: Python takes the last of them.
const TWICE = [["Y", "y"], ["H", "I"]];

const fault = (name, cell, what) => {
  const shown = ["number", "bigint"].includes(typeof cell) ? cell : JSON.stringify(cell);
  throw new Error(`column ${name}: ${shown} ${what}`);
};

// Whether a row has a column: what all objects have, as `constructor`, is none unless it is the row's own.
export const hasCell = (row, name) => Object.hasOwn(row, name) || (name in row && !(name in Object.prototype));

const isGap = (cell) => cell === null || cell === undefined || Number.isNaN(cell);
const stripped = (text) => text.replace(AROUND, "");
const unquoted = (text) => text.replace(/^[ \t"]+|[ \t"]+$/g, "");

// A cell as text, as Python writes it; empty where it holds nothing.
const textOf = (name, cell) => {
  if (isGap(cell)) return "";
  if (typeof cell === "string") return stripped(cell);
  if (typeof cell === "boolean" || typeof cell === "bigint") return String(cell);
  if (typeof cell !== "number") fault(name, cell, "is no text, number or truth value");
  if (!Number.isFinite(cell)) return cell > 0 ? "inf" : "-inf";
  if (Number.isInteger(cell))
    return Number.isSafeInteger(cell) ? String(cell) : fault(name, cell, "may have lost digits: give it as text");
  return Math.abs(cell) >= 1e-4 ? String(cell) : cell.toExponential().replace(/e-(\d)$/, "e-0$1");
};

// The number that text is in the notation of Python, or NaN.
const entryOf = (text) => {
  const own = unquoted(text);
  return NUMBER.test(text) ? Number(own) : WORDS.get(own.toLowerCase()) ?? NaN;
};

const inNotation = (text, decimal, thousands) => {
  let written = unquoted(text);
  if (thousands && written.includes(thousands)) {
    const end = written.indexOf(decimal), whole = end < 0 ? written : written.slice(0, end);
    const [first, ...groups] = whole.split(thousands);
    const fit = /^[+-]?[0-9]{1,3}$/.test(first) && groups.length && groups.every((group) => /^[0-9]{3}$/.test(group));
    if (!fit) return NaN;
    written = first + groups.join("") + written.slice(whole.length);
  }
  if (decimal === ".") return entryOf(written);
  return written.includes(".") ? NaN : entryOf(written.replaceAll(decimal, "."));
};

// A number in a notation, whether it is missing, and what is wrong with it.
const numberOf = ({ decimal = ".", thousands = "" }, codes, name, cell) => {
  const written = typeof cell === "string", plain = decimal === "." && thousands === "";
  if (!isGap(cell) && !["string", "number", "boolean", "bigint"].includes(typeof cell)) fault(name, cell, "is not a number");
  let value, missing = isGap(cell);
  if (!written) value = missing ? NaN : Number(cell);
  else {
    const text = stripped(cell);
    value = plain ? entryOf(cell) : inNotation(text, decimal, thousands);
    if (plain) missing = Number.isNaN(value) && EMPTY.has(unquoted(cell));
    if (!plain || codes.words) missing ||= text === "" || codes.texts.has(text);
  }
  // Codes are numbers as well: -99 and -99.0 are one.
  missing ||= codes.numbers.has(value);
  const wrong = Number.isNaN(value) ? "is not a number" : Number.isFinite(value) ? null : "is infinite";
  return { value: missing ? NaN : value, missing, wrong: missing ? null : wrong };
};

// Numbers that mean something only together: where one is missing, all are.
const numbersOf = (column, codes, names, cells) => {
  const found = cells.map((cell, i) => numberOf(column, codes, names[i], cell));
  if (found.some((each) => each.missing)) return cells.map(() => NaN);
  found.forEach((each, i) => { if (each.wrong) fault(names[i], cells[i], each.wrong); });
  return found.map((each) => each.value);
};

// Days since the start of 1970, by the parts of a date and a time as text; NaN if there is no such time.
const daysOf = ({ Y = "1900", m = "1", d = "1", H = "0", M = "0", S = "0", f = "0", zone = "Z" }) => {
  const [year, month, day, hour, minute, second] = [Y, m, d, H, M, S].map(Number);
  const microseconds = Number(f.slice(0, 6).padEnd(6, "0")), midnight = new Date(0);
  midnight.setUTCFullYear(year, month - 1, day);
  const [, hours = 0, minutes = 0] = (/(\d\d):?(\d\d)?$/.exec(zone) || []).map((part) => Number(part || 0));
  const known = year >= 1 && midnight.getUTCMonth() === month - 1 && midnight.getUTCDate() === day && hour < 24
    && minute < 60 && second < 60 && hours < 24 && minutes < 60;
  const ahead = (zone[0] === "-" ? -1 : 1) * (60 * hours + minutes);
  const seconds = midnight.getTime() / 1000 + 3600 * hour + 60 * (minute - ahead) + second;
  return known ? (1e6 * seconds + microseconds) / (1000 * DAY) : NaN;
};

const afterIso = (text) => {
  const [whole, Y, m, d, H, M, S, f, zone] = ISO.exec(text) || [];
  return whole === undefined ? NaN : daysOf({ Y, m, d, H, M, S, f, zone });
};

// Parts with the year in full, from 1969 to 2068, and the hour of the whole day.
const inFull = ({ y, I, p = "am", ...parts }) => ({
  ...parts,
  ...(y && { Y: String(Number(y) + (Number(y) > 68 ? 1900 : 2000)) }),
  ...(I && { H: String((Number(I) % 12) + (p.toLowerCase() === "pm" ? 12 : 0)) }),
});

const inForm = (name, text, form) => {
  const parts = form.match(/%.|\s+|./gs), fields = parts.filter((part) => part[0] === "%").map((part) => part[1]);
  if (fields.some((field) => !Object.hasOwn(FIELDS, field)) || new Set(fields).size < fields.length
    || TWICE.some((alike) => alike.every((field) => fields.includes(field))))
    fault(name, text, `is a date as ${form}, which cannot be read here: give a Date`);
  const pattern = parts.map((part) => (part[0] === "%" ? `(${FIELDS[part[1]]})`
    : part.trim() === "" ? "\\s+" : part.replace(/[^\w]/g, "\\$&"))).join("");
  const found = new RegExp(`^${pattern}`, "i").exec(text);
  if (!found || found[0].length < text.length) return NaN;
  return daysOf(inFull(Object.fromEntries(fields.map((field, i) => [field, found[i + 1]]))));
};

const days = ({ form = "default" }, codes, name, cell) => {
  // A moment, as Python's times with a zone are: in UTC, wherever this runs.
  if (cell instanceof Date) return cell.getTime() / DAY;
  const text = textOf(name, cell);
  if (text === "" || (typeof cell === "string" && codes.texts.has(text))) return NaN;
  const found = form === "default" ? afterIso(text) : inForm(name, text, form);
  const written = form === "default" ? "after ISO 8601" : `as ${form}`;
  return Number.isNaN(found) ? fault(name, cell, `is no Date and no date ${written}`) : found;
};

// The place of a cell's level among those declared, -1 if there is none; NaN where it is missing.
const placeOf = ({ levels }, codes, name, cell) => {
  const text = textOf(name, cell), place = levels.indexOf(text);
  return text === "" || (place < 0 && codes.texts.has(text)) ? NaN : place;
};

const readers = {
  number: (column, codes, names, cells) => numbersOf(column, codes, names, cells),
  date: (column, codes, [name], [cell]) => [days(column, codes, name, cell)],
  boolean: (column, codes, [name], [cell]) => {
    const text = textOf(name, cell), word = text.toLowerCase();
    if (text === "" || codes.texts.has(text)) return [NaN];
    // True by type is yes, whatever the words for it are.
    if (typeof cell === "boolean") return [Number(cell)];
    const is = (words) => words.some((each) => each.toLowerCase() === word);
    return is(column.true_values) ? [1] : is(column.false_values) ? [0] : fault(name, cell, "is neither yes nor no");
  },
  category: (column, codes, [name], [cell]) => {
    const place = placeOf(column, codes, name, cell);
    if (place !== -1) return [place];
    return column.other ? [column.levels.length] : fault(name, cell, "is a level that is not declared");
  },
  "ordered category": (column, codes, [name], [cell]) => {
    const rank = placeOf(column, codes, name, cell);
    if (rank !== -1) return [rank];
    return column.missing === "refuse" ? fault(name, cell, "is a level that is not declared") : [NaN];
  },
  place: (column, codes, names, cells) => {
    const degrees = numbersOf({}, codes, names, cells);
    if (Math.abs(degrees[0]) > 90 || Math.abs(degrees[1]) > 360)
      fault(names.join(" and "), degrees, "is no latitude and longitude in degrees");
    return degrees;
  },
  vector: (column, codes, names, cells) => numbersOf({}, codes, names, cells),
};

/** What means that a cell is missing, as text and as numbers. */
export const codesOf = (texts) => ({
  texts: new Set(texts),
  numbers: new Set(texts.map(entryOf).filter((value) => !Number.isNaN(value))),
  words: texts.some((text) => !EMPTY.has(text)),
});

/** Names of the cells that each column is read from. */
export const sourcesOf = (column) => (column.type === "vector" ? column.columns
  : column.type === "place" ? [column.latitude, column.longitude] : [column.name]);

/** Values of a row of cells, or null if it lacks one without which there is no prediction. */
export const valuesOf = (columns, codes, row) => {
  const values = [];
  for (const column of columns) {
    const names = sourcesOf(column);
    for (const name of names) if (!hasCell(row, name)) throw new Error(`there is no column ${name}`);
    let own = readers[column.type](column, codes, names, names.map((name) => row[name]));
    if (own.some(Number.isNaN)) {
      if (column.missing === "refuse") fault(names.join(" and "), row[names[0]] ?? null, "is empty");
      if (column.missing === "drop") return null;
      if (column.missing === "category") own = [column.levels.length + (column.other ? 1 : 0)];
    }
    values.push(...own);
  }
  return values;
};
