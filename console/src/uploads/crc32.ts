/** CRC-32, as in zip and S3: four bytes per step, some hundred megabytes a second. */

const POLYNOMIAL = 0xedb8_8320;

const TABLES = Array.from({ length: 4 }, () => new Uint32Array(256)) as [
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
];
for (let byte = 0; byte < 256; byte++) {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  TABLES[0][byte] = value;
}
for (let byte = 0; byte < 256; byte++) {
  for (let at = 1; at < 4; at++) {
    const before = TABLES[at - 1]?.[byte] ?? 0;
    (TABLES[at] as Uint32Array)[byte] = (before >>> 8) ^ (TABLES[0][before & 255] as number);
  }
}

/** Continues the CRC `before` over `bytes`; the CRC of empty input is 0. */
export function crc32(bytes: Uint8Array, before = 0): number {
  const [t0, t1, t2, t3] = TABLES;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let crc = ~before;
  let at = 0;
  for (; at + 4 <= bytes.length; at += 4) {
    crc ^= view.getUint32(at, true);
    crc =
      (t3[crc & 255] as number) ^
      (t2[(crc >>> 8) & 255] as number) ^
      (t1[(crc >>> 16) & 255] as number) ^
      (t0[crc >>> 24] as number);
  }
  for (; at < bytes.length; at++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[at] as number)) & 255] as number);
  return ~crc >>> 0;
}

/** CRC-32 in base64, as in the API. */
export function crcText(crc: number): string {
  return btoa(String.fromCharCode(crc >>> 24, (crc >>> 16) & 255, (crc >>> 8) & 255, crc & 255));
}
