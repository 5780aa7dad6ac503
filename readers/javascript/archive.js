// The archive of a release: a ZIP file of a JSON manifest and of arrays, with SHA-256 digests. See
// docs/file-format.md. Reading is bounded: nothing unpacks to more than it declares.
const FORMAT = "cloakgp release", VERSION = 1;
const MANIFEST = "manifest.json", DIGEST = "manifest.sha256";
const MOST_BYTES = 2 ** 28, LARGEST_RATIO = 1032;
const END = 0x06054b50, ENTRY = 0x02014b50, LOCAL = 0x04034b50, END_BYTES = 22, MOST_COMMENT = 65535;
const HEADER = /^\{'descr': '<f8', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n$/;
const text = new TextDecoder("utf-8", { fatal: true });

const refuse = (why) => { throw new Error(`this is no release file that can be read here: ${why}`); };

// Where each member lies: its packed bytes, how they are packed, and its size.
const members = (bytes) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - END_BYTES;
  const first = Math.max(0, end - MOST_COMMENT);
  while (end >= first && view.getUint32(end, true) !== END) end--;
  if (end < first) refuse("it is no ZIP file, or was cut off");
  const count = view.getUint16(end + 10, true), found = new Map();
  let place = view.getUint32(end + 16, true), total = 0;
  for (let i = 0; i < count; i++) {
    if (place + 46 > bytes.length || view.getUint32(place, true) !== ENTRY) refuse("its directory is damaged");
    const [flags, method] = [view.getUint16(place + 8, true), view.getUint16(place + 10, true)];
    const [packed, size] = [view.getUint32(place + 20, true), view.getUint32(place + 24, true)];
    const name = text.decode(bytes.subarray(place + 46, place + 46 + view.getUint16(place + 28, true)));
    const local = view.getUint32(place + 42, true);
    if (flags & 1 || (method !== 0 && method !== 8)) refuse("a member is packed in a way that is never used");
    if (found.has(name)) refuse("two members have the same name");
    if (local + 30 > bytes.length || view.getUint32(local, true) !== LOCAL) refuse("its directory is damaged");
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    if (start + packed > bytes.length || size > packed * (method ? LARGEST_RATIO : 1)) refuse("a member is damaged");
    total += size;
    found.set(name, { content: bytes.subarray(start, start + packed), method, size });
    place += 46 + view.getUint16(place + 28, true) + view.getUint16(place + 30, true) + view.getUint16(place + 32, true);
  }
  if (total > MOST_BYTES) refuse(`it would unpack to ${total} bytes, and ${MOST_BYTES} are allowed`);
  return found;
};

const unpacked = async ({ content, method, size }) => {
  if (method === 0) return content.length === size ? content : refuse("a member is damaged");
  const reader = new Blob([content]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const whole = new Uint8Array(size);
  let length = 0;
  for (;;) {
    let part;
    try { part = await reader.read(); } catch { refuse("a member is damaged"); }
    if (part.done) break;
    if (length + part.value.length > size) refuse("a member is larger than it says");
    whole.set(part.value, length);
    length += part.value.length;
  }
  return length === size ? whole : refuse("a member is damaged");
};

const digest = async (content) => {
  const hash = new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", content));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
};

// Doubles in C order: a .npy file of version 1.0, of one kind.
const array = (content) => {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0];
  if (content.length < 10 || magic.some((byte, i) => content[i] !== byte)) refuse("an array is written in another way");
  const start = 10 + view.getUint16(8, true);
  const header = HEADER.exec(new TextDecoder("latin1").decode(content.subarray(10, start)));
  if (!header) refuse("an array is written in another way");
  const shape = header[1].split(",").map((part) => part.trim()).filter(Boolean).map(Number);
  const size = shape.reduce((product, each) => product * each, 1);
  if (content.length - start !== 8 * size) refuse("an array has another size than it says");
  const values = new Float64Array(size);
  for (let i = 0; i < size; i++) values[i] = view.getFloat64(start + 8 * i, true);
  if (!values.every(Number.isFinite)) refuse("an array is not of finite numbers");
  const columns = shape.length > 1 ? shape[1] : size;
  return { values, shape, rows: shape.length > 1 ? shape[0] : 1, columns };
};

// Python writes infinite bounds of hyperparameters, which JSON has not.
const parsed = (written) =>
  JSON.parse(written.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g, (part) => (part[0] === '"' ? part : "null")));

/** The manifest of a release file, and its arrays by name. */
export const openArchive = async (content) => {
  const bytes = content instanceof Uint8Array ? content : new Uint8Array(content);
  const found = members(bytes);
  if (!found.has(MANIFEST) || !found.has(DIGEST)) refuse("it has no manifest");
  const written = await unpacked(found.get(MANIFEST));
  const manifest = parsed(text.decode(written));
  if (manifest.format !== FORMAT) refuse("its manifest is of something else");
  if (manifest.version !== VERSION)
    refuse(`it has format version ${manifest.version}, and this reads version ${VERSION}`);
  const edited = "it was changed after it was written: get it again from its publisher";
  if (text.decode(await unpacked(found.get(DIGEST))) !== await digest(written)) refuse(edited);
  const names = Object.keys(manifest.sha256);
  if (names.some((name) => !found.has(name)) || found.size !== names.length + 2) refuse(edited);
  const arrays = new Map();
  for (const name of names) {
    const member = await unpacked(found.get(name));
    if (await digest(member) !== manifest.sha256[name]) refuse(edited);
    arrays.set(name, array(member));
  }
  return { manifest, arrays };
};
