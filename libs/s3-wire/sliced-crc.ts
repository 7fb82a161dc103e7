/**
 * CRCs of up to 64 bits, eight bytes at a time, in WebAssembly generated here: JavaScript has no
 * fast 64-bit integers (five times slower). The memory contains eight tables of 256 entries,
 * followed by the bytes to process.
 */
const TABLE_BYTES = 256 * 8;
const DATA_AT = 8 * TABLE_BYTES;
const PAGES = 2;
const DATA_BYTES = PAGES * 65_536 - DATA_AT;

/** A number in the variable-length form of WebAssembly; signed, as constants are. */
function signed(value: number): number[] {
  const low = value & 0x7f;
  const rest = value >> 7;
  const isLast = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
  return isLast ? [low] : [low | 0x80, ...signed(rest)];
}

function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

const section = (id: number, content: readonly number[]) => [id, ...unsigned(content.length), ...content];
const get = (local: number) => [0x20, local];
const set = (local: number) => [0x21, local];
const i32 = (value: number) => [0x41, ...signed(value)];
const i64 = (value: number) => [0x42, ...signed(value)];
const loadI64 = (offset: number) => [0x29, 3, ...unsigned(offset)];
const XOR = 0x85;

/** The entry for byte `lane` of the CRC, which is local 0. */
function lookUp(lane: number): number[] {
  const shifted = [...get(0), ...i64(8 * lane), 0x88];
  const address = [...shifted, ...i64(255), 0x83, 0xa7, ...i32(3), 0x74];
  return [...address, ...loadI64((7 - lane) * TABLE_BYTES)];
}

/** `advance(crc: i64, at: i32, end: i32): i64`, over `end - at` bytes: eight, or a multiple. */
function program(): Uint8Array<ArrayBuffer> {
  const mixed = [...get(1), ...loadI64(0), ...get(0), XOR, ...set(0)];
  const lanes = [1, 2, 3, 4, 5, 6, 7].flatMap((lane) => [...lookUp(lane), XOR]);
  const next = [...get(1), ...i32(8), 0x6a, 0x22, 1, ...get(2), 0x49, 0x0d, 0];
  const loop = [0x03, 0x40, ...mixed, ...lookUp(0), ...lanes, ...set(0), ...next, 0x0b];
  const body = [0, ...loop, ...get(0), 0x0b];
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 3, 0x7e, 0x7f, 0x7f, 1, 0x7e]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, PAGES]),
    ...section(7, [2, 1, 0x6d, 2, 0, 1, 0x66, 0, 0]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ]);
}

function fillTables(tables: BigUint64Array, polynomial: bigint): void {
  for (let at = 0; at < 256; at += 1) {
    let entry = BigInt(at);
    for (let bit = 0; bit < 8; bit += 1) entry = entry & 1n ? (entry >> 1n) ^ polynomial : entry >> 1n;
    tables[at] = entry;
  }
  for (let at = 256; at < tables.length; at += 1) {
    const before = tables[at - 256] ?? 0n;
    tables[at] = (before >> 8n) ^ (tables[Number(before & 255n)] ?? 0n);
  }
}

/** The used subset; Node's types lack it. */
declare const WebAssembly: {
  readonly Module: new (code: Uint8Array) => object;
  readonly Instance: new (
    module: object,
  ) => {
    readonly exports: { readonly m: { readonly buffer: ArrayBuffer }; readonly f: Engine['advance'] };
  };
};

interface Engine {
  readonly advance: (crc: bigint, at: number, end: number) => bigint;
  readonly data: Uint8Array;
  readonly table: BigUint64Array;
}

function makeEngine(polynomial: bigint): Engine {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(program()));
  const { buffer } = exports.m;
  fillTables(new BigUint64Array(buffer, 0, DATA_AT / 8), polynomial);
  return {
    advance: exports.f,
    data: new Uint8Array(buffer, DATA_AT),
    table: new BigUint64Array(buffer, 0, 256),
  };
}

/** The CRC of all bytes; `before`: the CRC of the bytes before `bytes`, 0n at the start. */
export type Crc = (bytes: Uint8Array, before: bigint) => bigint;

/** A reflected CRC with this many bits, initialized and finalized with all ones. */
export function slicedCrc(polynomial: bigint, bits: 32 | 64): Crc {
  const ones = (1n << BigInt(bits)) - 1n;
  let engine: Engine | undefined;
  return (bytes, before) => {
    engine ??= makeEngine(polynomial);
    const { advance, data, table } = engine;
    let crc = before ^ ones;
    let at = 0;
    while (bytes.length - at >= 8) {
      const length = Math.min(DATA_BYTES, (bytes.length - at) & ~7);
      data.set(bytes.subarray(at, at + length));
      crc = BigInt.asUintN(64, advance(crc, DATA_AT, DATA_AT + length));
      at += length;
    }
    for (; at < bytes.length; at += 1) {
      crc = (crc >> 8n) ^ (table[Number(crc & 255n) ^ (bytes[at] ?? 0)] ?? 0n);
    }
    return crc ^ ones;
  };
}
