/** The speed of one core with bytes in memory, in bytes per second of one thread. */
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { crc32 } from '@node-rs/crc32';
import { childInput } from '../child.ts';

const { work, bytes } = childInput<{ work: 'md5' | 'crc32' | 'aes-256-gcm'; bytes: number }>();
const CHUNK = 64 * 1024;
const content = randomBytes(bytes);

const works: Record<typeof work, () => void> = {
  md5: () => createHash('md5').update(content).digest(),
  crc32: () => crc32(content),
  'aes-256-gcm': () => {
    const key = randomBytes(32);
    for (let offset = 0; offset < bytes; offset += CHUNK) {
      const cipher = createCipheriv('aes-256-gcm', key, randomBytes(12));
      cipher.update(content.subarray(offset, offset + CHUNK));
      cipher.final();
    }
  },
};

works[work]();
const began = performance.now();
works[work]();
console.log(JSON.stringify({ bytesPerSecond: (bytes * 1000) / (performance.now() - began) }));
