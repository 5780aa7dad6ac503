// Cells of a table as values: numbers, places of levels, days, degrees; NaN where one is missing. As
// cloakgp.columns reads them, but dates, which are taken as Date objects or after ISO 8601 alone.
const DAY = 86400000;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?)?(Z|[+-]\d\d:?\d\d)?$/;

const fault = (name, cell, what) => { throw new Error(`column ${name}: ${JSON.stringify(cell)} ${what}`); };

const number = (column, name, cell) => {
  if (typeof cell === "number") return Number.isFinite(cell) ? cell : fault(name, cell, "is infinite");
  let written = String(cell).trim();
  const { decimal = ".", thousands = "" } = column;
  if (thousands && written.includes(thousands)) {
    const [whole, ...rest] = written.split(decimal);
    const groups = whole.split(thousands);
    const fit = /^[+-]?\d{1,3}$/.test(groups[0]) && groups.slice(1).every((group) => /^\d{3}$/.test(group));
    if (!fit) fault(name, cell, "is not a number");
    written = [groups.join(""), ...rest].join(decimal);
  }
  if (decimal !== ".") {
    if (written.includes(".")) fault(name, cell, "is not a number");
    written = written.replace(decimal, ".");
  }
  return NUMBER.test(written) ? Number(written) : fault(name, cell, "is not a number");
};

const days = (name, cell) => {
  if (cell instanceof Date) return cell.getTime() / DAY;
  const parts = ISO.exec(String(cell).trim());
  if (!parts) fault(name, cell, "is no Date and no date after ISO 8601");
  const [, year, month, day, hour = "0", minute = "0", second = "0", zone = "Z"] = parts;
  const midnight = new Date(`${year}-${month}-${day}T00:00:00Z`);
  if (Number.isNaN(midnight.getTime()) || midnight.getUTCDate() !== Number(day)) fault(name, cell, "is no date");
  const ahead = zone === "Z" ? 0 : (zone[0] === "-" ? -1 : 1) * (60 * zone.slice(1, 3) + Number(zone.slice(-2)));
  return (midnight.getTime() / 1000 + 3600 * hour + 60 * (minute - ahead) + Number(second)) / 86400;
};

const readers = {
  number: (column, name, cell) => number(column, name, cell),
  date: (column, name, cell) => days(name, cell),
  boolean: (column, name, cell) => {
    const word = String(cell).toLowerCase();
    const is = (words) => words.some((each) => each.toLowerCase() === word);
    if (cell === true || is(column.true_values)) return 1;
    return cell === false || is(column.false_values) ? 0 : fault(name, cell, "is neither yes nor no");
  },
  category: (column, name, cell) => {
    const place = column.levels.indexOf(String(cell).trim());
    if (place >= 0) return place;
    return column.other ? column.levels.length : fault(name, cell, "is a level that is not declared");
  },
  "ordered category": (column, name, cell) => {
    const rank = column.levels.indexOf(String(cell).trim());
    if (rank >= 0) return rank;
    return column.missing === "refuse" ? fault(name, cell, "is a level that is not declared") : NaN;
  },
  place: (column, name, cell) => number({}, name, cell),
  vector: (column, name, cell) => number({}, name, cell),
};

/** Names of the cells that each column is read from. */
export const sourcesOf = (column) => (column.type === "vector" ? column.columns
  : column.type === "place" ? [column.latitude, column.longitude] : [column.name]);

/** Values of a row of cells, or null if it lacks one without which there is no prediction. */
export const valuesOf = (columns, codes, row) => {
  const values = [];
  for (const column of columns) {
    const names = sourcesOf(column);
    for (const name of names) if (!(name in row)) throw new Error(`there is no column ${name}`);
    const gap = (cell) => cell === null || cell === undefined || Number.isNaN(cell)
      || (!(column.levels || []).includes(String(cell).trim()) && codes.has(String(cell).trim()));
    let own = names.some((name) => gap(row[name])) ? names.map(() => NaN)
      : names.map((name) => readers[column.type](column, name, row[name]));
    if (column.type === "place" && (Math.abs(own[0]) > 90 || Math.abs(own[1]) > 360))
      fault(names.join(" and "), own, "is no latitude and longitude in degrees");
    if (own.some(Number.isNaN)) {
      if (column.missing === "refuse") fault(names.join(" and "), row[names[0]] ?? null, "is empty");
      if (column.missing === "drop") return null;
      if (column.missing === "category") own = [column.levels.length + (column.other ? 1 : 0)];
    }
    values.push(...own);
  }
  return values;
};
