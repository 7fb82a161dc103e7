/** The files by which data say which cloud they belong to. */
import { readFileSync } from 'node:fs';
import { writeDurableFile } from './durable-file.ts';

export interface IdentityMark {
  /** `cld-…` */
  readonly cloud_id: string;
  /** How often the cloud had been started when it was written. */
  readonly starts: number;
}

/** null: there is none. Throws an Error of one clear line when it cannot be read. */
export function readMark(path: string): IdentityMark | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  const mark = parseMark(text);
  if (mark !== null) return mark;
  throw new Error(`${path} is damaged: put it back from your copy, or restore a recovery point`);
}

function parseMark(text: string): IdentityMark | null {
  try {
    const { cloud_id, starts } = JSON.parse(text) as Partial<IdentityMark>;
    return typeof cloud_id === 'string' && typeof starts === 'number' ? { cloud_id, starts } : null;
  } catch {
    return null;
  }
}

/** It is on disk when this returns, or the one before is. */
export function writeMark(path: string, mark: IdentityMark): void {
  writeDurableFile(path, textOf(mark), 0o600);
}

/** What puts it there by hand. */
export function markCommand(path: string, mark: IdentityMark): string {
  return `echo '${textOf(mark).trimEnd()}' > ${path}`;
}

function textOf(mark: IdentityMark): string {
  return `${JSON.stringify(mark)}\n`;
}
