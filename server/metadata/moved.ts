/** What is left where the metadata of a cloud were: the place where they are now. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartupError } from '../platform/data-directory.ts';

export interface Moved {
  /** The database, without a password, or the data directory. */
  readonly to: string;
  /** ms since 1970. */
  readonly at: number;
}

/** In the data directory. */
export const MOVED_FILE = 'metadata-moved.json';
/** In the database. */
export const MOVED_SETTING = 'metadata_moved';

/** Throws StartupError if the metadata of that data directory were moved to a database. */
export function assertNotMoved(directory: string): void {
  const path = join(directory, MOVED_FILE);
  if (!existsSync(path)) return;
  const { to } = JSON.parse(readFileSync(path, 'utf8')) as Moved;
  throw new StartupError(
    `The metadata of this cloud are in ${to}: set CLOUDLET_METADATA_URL, or move them back with cloudlet migrate --to sqlite`,
  );
}
