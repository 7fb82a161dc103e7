/** Reads the last file of an export: the cloud writes MANIFEST.json before the zip directory. */
import { type FileHandle, open } from 'node:fs/promises';
import { ClientError } from '../failures.ts';

export interface ExportManifest {
  readonly account: { readonly username: string };
  readonly counts: { readonly files: number; readonly bytes: number; readonly left_out: number };
  /** The first files that are missing in the export. */
  readonly left_out: readonly { readonly path: string; readonly reason: string }[];
}

const END_BYTES = 22;
const LOCATOR_BYTES = 20;
const NAME = 'MANIFEST.json';
/** Size of the manifest's directory entry; a large archive adds 8-byte sizes. */
const ENTRY_BYTES = 46 + NAME.length;
const EXTRA_BYTES = 28;
/** Bytes read of the manifest: its head, without the list of files, which may be long. */
const HEAD_BYTES = 2 ** 20;
const FILES = /,?\s*"files": \[[\s\S]*$/;

/** Throws ClientError for an incomplete archive. */
export async function readManifest(path: string): Promise<ExportManifest> {
  const file = await open(path, 'r');
  try {
    const manifest = await manifestIn(file);
    if (manifest !== undefined) return manifest;
  } finally {
    await file.close();
  }
  throw new ClientError('the export is incomplete: it was cut off');
}

async function manifestIn(file: FileHandle): Promise<ExportManifest | undefined> {
  const { size } = await file.stat();
  const read = async (at: number, bytes: number) => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, Math.max(0, at));
    return buffer.subarray(0, bytesRead);
  };
  const end = await read(size - END_BYTES, END_BYTES);
  if (end.length < END_BYTES || end.readUInt32LE(0) !== 0x06054b50) return undefined;
  let directoryEnd = size - END_BYTES;
  const locator = await read(directoryEnd - LOCATOR_BYTES, LOCATOR_BYTES);
  if (locator.readUInt32LE(0) === 0x07064b50) directoryEnd = Number(locator.readBigUInt64LE(8));
  for (const extra of [0, EXTRA_BYTES]) {
    const bytes = ENTRY_BYTES + extra;
    const entry = await read(directoryEnd - bytes, bytes);
    if (entry.readUInt32LE(0) !== 0x02014b50 || entry.readUInt16LE(30) !== extra) continue;
    const at = extra === 0 ? entry.readUInt32LE(42) : Number(entry.readBigUInt64LE(ENTRY_BYTES + 20));
    const local = await read(at, 30);
    const start = at + 30 + local.readUInt16LE(26) + local.readUInt16LE(28);
    const text = (await read(start, Math.min(HEAD_BYTES, directoryEnd - start))).toString('utf8');
    return JSON.parse(text.replace(FILES, '}')) as ExportManifest;
  }
  return undefined;
}
