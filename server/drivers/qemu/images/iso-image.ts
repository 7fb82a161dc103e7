/**
 * A minimal ISO 9660 image (ECMA-119) with Joliet names: a few files in the root directory, nothing else.
 * Joliet because the plain format knows no lower-case letters.
 */

export interface IsoFile {
  readonly name: string;
  readonly content: Uint8Array;
}

const SECTOR = 2048;
/** 0-15: for a boot loader, empty. 16, 17: descriptors, plain and Joliet. 18: end of descriptors. */
const TERMINATOR_AT = 18;
/** The path tables, little- and big-endian, first with plain names, then with Joliet names. */
const PATH_TABLES_AT = 19;
const PLAIN_ROOT_AT = 23;
const JOLIET_ROOT_AT = 24;
const FILES_AT = 25;
const DIRECTORY_FLAG = 2;
const ROOT_PATH_TABLE_BYTES = 10;

interface Names {
  readonly isJoliet: boolean;
  readonly rootAt: number;
  readonly pathTablesAt: number;
}

const PLAIN: Names = { isJoliet: false, rootAt: PLAIN_ROOT_AT, pathTablesAt: PATH_TABLES_AT };
const JOLIET: Names = { isJoliet: true, rootAt: JOLIET_ROOT_AT, pathTablesAt: PATH_TABLES_AT + 2 };

const sectorsOf = (bytes: number) => Math.ceil(bytes / SECTOR);

/** Numbers are stored twice, little-endian and then big-endian. */
function both32(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(value, 0);
  bytes.writeUInt32BE(value, 4);
  return bytes;
}

function both16(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt16LE(value, 0);
  bytes.writeUInt16BE(value, 2);
  return bytes;
}

function text(value: string, { length, isJoliet }: { length: number; isJoliet: boolean }): Buffer {
  if (!isJoliet) return Buffer.from(value.padEnd(length, ' '), 'ascii');
  return Buffer.from(value.padEnd(length / 2, ' '), 'utf16le').swap16();
}

function directoryRecord(id: Buffer, at: number, { bytes, flags }: { bytes: number; flags: number }) {
  // An even length is prescribed.
  const length = 33 + id.length + ((33 + id.length) % 2);
  const record = Buffer.alloc(length);
  record[0] = length;
  both32(at).copy(record, 2);
  both32(bytes).copy(record, 10);
  // 18-24: the date, all zero ("not specified"), so that equal input gives an equal image.
  record[25] = flags;
  both16(1).copy(record, 28);
  record[32] = id.length;
  id.copy(record, 33);
  return record;
}

function rootRecord(id: number, { rootAt }: Names): Buffer {
  return directoryRecord(Buffer.from([id]), rootAt, { bytes: SECTOR, flags: DIRECTORY_FLAG });
}

function fileId(name: string, { isJoliet }: Names): Buffer {
  return isJoliet ? Buffer.from(name, 'utf16le').swap16() : Buffer.from(`${name.toUpperCase()};1`, 'ascii');
}

function rootDirectory(files: readonly IsoFile[], names: Names): Buffer {
  const records = [rootRecord(0, names), rootRecord(1, names)];
  let at = FILES_AT;
  const placed = files.map(({ name, content }) => {
    const record = directoryRecord(fileId(name, names), at, { bytes: content.length, flags: 0 });
    at += sectorsOf(content.length);
    return { id: fileId(name, names), record };
  });
  placed.sort((a, b) => Buffer.compare(a.id, b.id));
  const bytes = Buffer.concat([...records, ...placed.map(({ record }) => record)]);
  if (bytes.length > SECTOR) throw new Error('too many files for this image');
  return bytes;
}

function pathTable(rootAt: number, isBigEndian: boolean): Buffer {
  const table = Buffer.alloc(ROOT_PATH_TABLE_BYTES);
  table[0] = 1;
  if (isBigEndian) table.writeUInt32BE(rootAt, 2);
  else table.writeUInt32LE(rootAt, 2);
  table.writeUInt16LE(1, 6);
  if (isBigEndian) table.writeUInt16BE(1, 6);
  return table;
}

function descriptor(label: string, sectors: number, names: Names): Buffer {
  const { isJoliet, pathTablesAt } = names;
  const bytes = Buffer.alloc(SECTOR);
  const put = (at: number, value: Buffer) => value.copy(bytes, at);
  const putText = (at: number, length: number, value = '') => put(at, text(value, { length, isJoliet }));
  bytes[0] = isJoliet ? 2 : 1;
  bytes.write('CD001', 1, 'ascii');
  bytes[6] = 1;
  putText(8, 32);
  putText(40, 32, label);
  put(80, both32(sectors));
  // UCS-2 level 3: marks a supplementary descriptor as Joliet.
  if (isJoliet) bytes.write('%/E', 88, 'ascii');
  put(120, both16(1));
  put(124, both16(1));
  put(128, both16(SECTOR));
  put(132, both32(ROOT_PATH_TABLE_BYTES));
  bytes.writeUInt32LE(pathTablesAt, 140);
  bytes.writeUInt32BE(pathTablesAt + 1, 148);
  put(156, rootRecord(0, names));
  for (const at of [190, 318, 446, 574]) putText(at, 128);
  // Joliet fields of odd length are padded with one byte.
  for (const at of [702, 739, 776]) putText(at, 36);
  for (const at of [813, 830, 847, 864]) bytes.fill('0', at, at + 16);
  bytes[881] = 1;
  return bytes;
}

/** An image of about 20 files at most, with short names. `label`: up to 16 characters. */
export function isoImage(label: string, files: readonly IsoFile[]): Buffer {
  const sectors = files.reduce((sum, { content }) => sum + sectorsOf(content.length), FILES_AT);
  const image = Buffer.alloc(sectors * SECTOR);
  const put = (at: number, bytes: Uint8Array) => image.set(bytes, at * SECTOR);
  put(16, descriptor(label, sectors, PLAIN));
  put(17, descriptor(label, sectors, JOLIET));
  put(TERMINATOR_AT, Buffer.from('\xffCD001\x01', 'latin1'));
  for (const names of [PLAIN, JOLIET]) {
    put(names.pathTablesAt, pathTable(names.rootAt, false));
    put(names.pathTablesAt + 1, pathTable(names.rootAt, true));
    put(names.rootAt, rootDirectory(files, names));
  }
  let at = FILES_AT;
  for (const { content } of files) {
    put(at, content);
    at += sectorsOf(content.length);
  }
  return image;
}
