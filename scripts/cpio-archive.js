/** Writes cpio archives of the "newc" form, which the Linux kernel unpacks into its first file system. */
import { Buffer } from 'node:buffer';

const TYPES = { directory: 0o040000, file: 0o100000, link: 0o120000, character: 0o020000 };

function field(value) {
  return (value >>> 0).toString(16).padStart(8, '0').toUpperCase();
}

/** To the next multiple of four. */
function pad(length) {
  return Buffer.alloc((4 - (length % 4)) % 4);
}

/**
 * One archive of `entries`, in their order: a directory comes before what is in it. All belong to root and
 * bear no time, so that the same entries give the same bytes.
 *
 * An entry is `{ path, type, mode, content, device }`: `path` without a leading slash; `type` one of TYPES;
 * `content` the bytes of a file or the target of a link; `device` `[major, minor]`.
 */
export function cpioArchive(entries) {
  const parts = [];
  const all = [...entries, { path: 'TRAILER!!!', type: undefined, mode: 0 }];
  for (const [index, { path, type, mode, content = '', device = [0, 0] }] of all.entries()) {
    const name = Buffer.from(`${path}\0`);
    const bytes = Buffer.from(content);
    const kind = type === undefined ? 0 : TYPES[type];
    // Inode, mode, owner, group, links, time, size, device of the file, device that it is, name, checksum.
    const numbers = [index + 1, kind | mode, 0, 0, 1, 0, bytes.length, 0, 0, ...device, name.length, 0];
    const head = Buffer.from(`070701${numbers.map(field).join('')}`);
    parts.push(head, name, pad(head.length + name.length), bytes, pad(bytes.length));
  }
  return Buffer.concat(parts);
}
