/** One regular file in a tar archive (POSIX.1-1988, "ustar"). */

const BLOCK = 512;

/** `name`: at most 100 bytes of ASCII, relative. */
export function tarEntry(name: string, bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  head.write(name, 0, 100, 'latin1');
  head.write(octal(0o600, 7), 100);
  head.write(octal(0, 7), 108);
  head.write(octal(0, 7), 116);
  head.write(octal(bytes.length, 11), 124);
  head.write(octal(0, 11), 136);
  head.write('        0', 148);
  head.write('ustar\x0000', 257, 'latin1');
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return Buffer.concat([head, bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]);
}
