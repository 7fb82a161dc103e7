/** CRC-64 of ECMA-182 in Go's variant (CRC-64/XZ), used by mongodump archives. */
const POLYNOMIAL = 0xc96c5795d7870f42n;

const LOW = new Int32Array(256);
const HIGH = new Int32Array(256);
for (let byte = 0; byte < 256; byte++) {
  let value = BigInt(byte);
  for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ POLYNOMIAL : value >> 1n;
  LOW[byte] = Number(BigInt.asIntN(32, value));
  HIGH[byte] = Number(BigInt.asIntN(32, value >> 32n));
}

export class Crc64 {
  #low = -1;
  #high = -1;

  add(bytes: Uint8Array): void {
    let [low, high] = [this.#low, this.#high];
    for (let i = 0; i < bytes.length; i++) {
      const at = (low ^ (bytes[i] as number)) & 255;
      low = ((low >>> 8) | (high << 24)) ^ (LOW[at] as number);
      high = (high >>> 8) ^ (HIGH[at] as number);
    }
    [this.#low, this.#high] = [low, high];
  }

  /** The checksum as a signed 64-bit number. */
  get value(): bigint {
    const [low, high] = [~this.#low >>> 0, ~this.#high >>> 0];
    return BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low));
  }
}
