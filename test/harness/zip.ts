/** Reads zips in tests, like ordinary programs. */
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';

export interface Unpacked {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Reads a zip by its directory, like ordinary programs. Sizes and offsets may be those of ZIP64. */
export function unzip(zip: Buffer): Unpacked[] {
  const end = zip.lastIndexOf(Buffer.from('504b0506', 'hex'));
  let [count, at] = [zip.readUInt16LE(end + 10), zip.readUInt32LE(end + 16)];
  if (count === 0xffff || at === 0xffffffff) {
    const end64 = Number(zip.readBigUInt64LE(end - 20 + 8));
    assert.equal(zip.readUInt32LE(end64), 0x06064b50);
    count = Number(zip.readBigUInt64LE(end64 + 32));
    at = Number(zip.readBigUInt64LE(end64 + 48));
  }
  return Array.from({ length: count }, () => {
    assert.equal(zip.readUInt32LE(at), 0x02014b50);
    const [checksum, size] = [zip.readUInt32LE(at + 16), zip.readUInt32LE(at + 24)];
    const [nameBytes, extraBytes] = [zip.readUInt16LE(at + 28), zip.readUInt16LE(at + 30)];
    const head = zip.readUInt32LE(at + 42);
    const name = zip.toString('utf8', at + 46, at + 46 + nameBytes);
    assert.equal(zip.readUInt32LE(head), 0x04034b50);
    const start = head + 30 + zip.readUInt16LE(head + 26) + zip.readUInt16LE(head + 28);
    const bytes = zip.subarray(start, start + size);
    assert.equal(crc32(bytes), checksum, name);
    assert.equal(zip.readUInt32LE(start + size), 0x08074b50, 'the checksum follows');
    at += 46 + nameBytes + extraBytes;
    return { name, bytes };
  });
}
